// Example texts, written for this page: one small town in nine languages, not translated word for word.

export const EXAMPLE_TEXTS = {
  English: `The first train to the coast leaves at six in the morning. Tickets are sold on board, and bicycles travel free outside the rush hours.
Simmer the onions slowly in butter, then add the stock and a spoonful of vinegar. The soup tastes better on the second day.
Our dog limps since Sunday and will not eat. The vet found a thorn between her toes and took it out.
A storm is expected on Thursday night, with heavy rain and gusts on the hills. On Friday the sky clears.
The rent goes up by three per cent in January. Tenants may object in writing within four weeks.
The library lends books for a month. Late books cost nothing, but please bring them back.`,
  Français: `Le dernier bus pour la gare passe à vingt-trois heures devant la mairie.
Laissez reposer la pâte une heure avant de la cuire au four bien chaud.
Le chat du voisin s'est cassé une patte en tombant du toit.
Il neigera demain au-dessus de mille mètres, prudence sur les routes.
La banque refuse le prêt tant que le salaire n'est pas régulier.
L'exposition de photos est ouverte gratuitement le premier dimanche du mois.`,
  Deutsch: `Fahrräder kann man hinter dem Bahnhof im Parkhaus abstellen.
Die Kartoffeln zwanzig Minuten kochen und noch warm in Scheiben schneiden.
Das Kaninchen frisst nur Heu und muss nächste Woche geimpft werden.
Am Nachmittag ziehen Wolken auf, abends kann es gewittern.
Die Steuererklärung muss bis Ende Juli beim Finanzamt sein.
Das Theater probt ein neues Stück und sucht noch zwei Schauspielerinnen.`,
  Español: `El autobús al aeropuerto sale cada media hora de la plaza mayor.
Se pelan los tomates, se fríen con ajo y se añade el arroz.
La yegua acaba de tener un potro y los dos están bien.
Mañana hará mucho calor, con cuarenta grados en el interior.
He pagado dos veces la factura de la luz y quiero que me devuelvan el dinero.
El coro ensaya los martes y el concierto será en junio.`,
  Italiano: `Il treno per Napoli è in ritardo di quaranta minuti.
Per il sugo bastano pomodori maturi, basilico e un filo d'olio.
Il veterinario visita i gatti solo la mattina.
Domenica soffierà un vento freddo e il mare sarà mosso.
L'affitto comprende l'acqua ma non il riscaldamento.
Il museo chiude alle sei, l'ultimo ingresso è alle cinque e mezza.`,
  Português: `A ponte está fechada e os carros têm de dar a volta pela aldeia.
O bacalhau fica de molho dois dias antes de ir ao forno.
As galinhas deixaram de pôr ovos por causa do frio.
O nevoeiro da manhã desaparece ao meio-dia.
O seguro da casa aumentou outra vez este ano.
A banda toca no jardim todos os sábados à noite.`,
  Nederlands: `De veerboot vaart niet bij harde wind.
Bak de pannenkoeken in een hete pan en serveer ze met stroop.
De egel in onze tuin houdt zijn winterslaap onder de bladeren.
Vannacht vriest het en morgen schijnt de zon.
Ik heb mijn spaargeld naar een andere bank gebracht.
De bibliotheek leest op woensdag voor aan kleine kinderen.`,
  Русский: `Поезд на Москву отправляется со второго пути через десять минут.
Нарежьте капусту, посолите её и оставьте на ночь.
Щенок боится грозы и прячется под кроватью.
Зимой у нас темнеет рано, и мороз держится до марта.
Квартплату можно внести до десятого числа.
В субботу на площади будет книжная ярмарка.`,
  日本語: `次の電車は五分遅れて到着します。
味噌汁に豆腐とわかめを入れて、弱火で温めます。
犬を毎朝公園へ散歩に連れて行きます。
午後から雨が降るので、傘を持って行ってください。
家賃は毎月二十五日に口座から引き落とされます。
美術館では来週から新しい展覧会が始まります。`,
};

/** Only in English: the head sorts texts in other languages by meaning. */
export const EXAMPLE_LABELS = [
  {
    name: "Travel",
    examples: ["The bus to the airport is late.", "Where can I park my car?", "The road is closed, take the ferry."],
  },
  {
    name: "Food",
    examples: ["Bake the cake for forty minutes.", "This sauce needs more salt.", "Peel the potatoes and boil them."],
  },
  {
    name: "Animals",
    examples: ["The cat is asleep on the sofa.", "Our horse has to see the vet.", "The puppy is afraid of strangers."],
  },
  {
    name: "Weather",
    examples: ["It will rain all weekend.", "A warm and sunny afternoon.", "Frost and fog in the morning."],
  },
  {
    name: "Money",
    examples: ["I have to pay the electricity bill.", "The bank raised its interest.", "My rent is too high."],
  },
  {
    name: "Culture",
    examples: ["The concert starts at eight.", "An exhibition of old paintings.", "She reads novels and goes to the theatre."],
  },
];
