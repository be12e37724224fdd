// Numbers that a search compares whole, in their normal forms, as in xsent/numbers.py, with the same patterns.

const DECIMAL = "\u066b"; // the point of a normal form

// Months in nine languages, from January; the abbreviations only count with a year, because "out" and "set" are some.
const MONTHS = [
  "january janvier januar enero gennaio janeiro januari января",
  "february février fevrier februar febrero febbraio fevereiro februari февраля",
  "march mars märz maerz marzo março marco maart марта",
  "april avril abril aprile апреля",
  "may mai mayo maggio maio mei мая",
  "june juin juni junio giugno junho июня",
  "july juillet juli julio luglio julho июля",
  "august août aout agosto augustus августа",
  "september septembre septiembre setiembre settembre setembro сентября",
  "october octobre oktober octubre ottobre outubro октября",
  "november novembre noviembre novembro ноября",
  "december décembre decembre dezember diciembre dicembre dezembro декабря",
];
const SHORT_MONTHS = [
  "jan janv ene gen янв",
  "feb févr fevr fev фев",
  "mar mär mrz mrt мар",
  "apr avr abr апр",
  "mag",
  "jun giu июн",
  "jul juil lug июл",
  "aug ago авг",
  "sep sept set сен сент",
  "oct okt ott out окт",
  "nov ноя",
  "dec déc dez dic дек",
];
const MONTH_OF = new Map(
  [MONTHS, SHORT_MONTHS].flatMap((names) => names.flatMap((row, i) => row.split(" ").map((name) => [name, i + 1]))),
);
const [NAME, SHORT] = [MONTHS, SHORT_MONTHS].map((names) => names.join(" ").replaceAll(" ", "|"));

const LETTERS = "a-z\u00df-\u024f\u0400-\u04ff"; // that a number is not next to; those of Chinese and Japanese may be
const [BEGIN, END, STOP] = [`(?<![0-9${LETTERS}])`, `(?![0-9${LETTERS}])`, "(?![0-9])"];
const [DAY, MONTH, YEAR] = ["(0?[1-9]|[12][0-9]|3[01])", "(0?[1-9]|1[0-2])", "((?:19|20)?[0-9]{2})"];
const [DD, MM] = ["(0[1-9]|[12][0-9]|3[01])", "(0[1-9]|1[0-2])"];
const NTH = "(?:[.°]|st|nd|rd|th|er|o|a)?";
const [HOUR, MINUTE] = ["([01]?[0-9]|2[0-4])", "([0-5][0-9])"];
const MORNING =
  "a[.]? ?m[.]?|(?:o['’]clock )?in the morning|(?:uhr )?(?:morgens|früh)|uhr vormittags|(?:heures? )?du matin" +
  "|(?:horas )?(?:de la mañana|de la madrugada|da manhã|da madrugada)|di mattina|del mattino" +
  "|(?:uur )?['’]s (?:ochtends|morgens)|(?:час(?:а|ов)? )?(?:утра|ночи)|午前";
const EVENING =
  "p[.]? ?m[.]?|(?:o['’]clock )?in the (?:afternoon|evening)|(?:uhr )?(?:abends|nachmittags)" +
  "|(?:heures? )?(?:du soir|de l['’]après-midi)|(?:horas )?(?:de la tarde|de la noche|da tarde|da noite)" +
  "|del pomeriggio|di sera|(?:uur )?['’]s (?:middags|avonds)|(?:час(?:а|ов)? )?вечера|час(?:а|ов)? дня|午後";
const HALF = `(${MORNING}|${EVENING}|uhr|uur)`;
const [IN_MORNING, IN_EVENING] = [MORNING, EVENING].map((half) => new RegExp(`^(?:${half})$`));
const TWO_DIGITS = /^(?:2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58])/; // country codes, ITU-T E.164

// Words that multiply a number before them, by the exponent of ten.
const SCALES = {
  3: "thousand tausend tsd mille mila mil duizend тыс тысяч тысяча тысячи",
  6:
    "million millions millionen mio mn mln mill millón millones milione milioni milhão milhões miljoen milj" +
    " миллион миллиона миллионов млн",
  9:
    "billion billions bn milliard milliards milliarde milliarden mrd mld miliardo miliardi miljard bilhão bilhões" +
    " mil_millones mil_milhões миллиард миллиарда миллиардов млрд",
  12:
    "trillion trillions billionen billón billones bilioni biljoen trilhão trilhões" +
    " триллион триллиона триллионов трлн",
};
const GLUED_SCALES = { 3: "k к" }; // "25k", not "25 k"
const MONEY_SCALES = { 3: "k т", 6: "m mi mm", 9: "b bi md mds", 12: "tn" }; // beside a currency: "$3.5m", "2 M€"
const JAPANESE_SCALES = { 十: 1, 百: 2, 千: 3, 万: 4, 億: 8, 兆: 12, 拾: 1, 萬: 4 };
const TABLES = [SCALES, GLUED_SCALES, MONEY_SCALES];
const EXPONENTS = new Map([
  ...TABLES.flatMap((table) =>
    Object.entries(table).flatMap(([exponent, words]) => words.split(" ").map((word) => [word.replace("_", " "), Number(exponent)])),
  ),
  ...Object.entries({ 千万: 7, 百万: 6, ...JAPANESE_SCALES }),
]);
const [SCALE, GLUED_SCALE, MONEY_SCALE] = TABLES.map((table) =>
  Object.values(table).reverse().join(" ").replaceAll(" ", "|").replaceAll("_", " "),
);
const KANJI = new Map([..."〇一二三四五六七八九壱弐参"].map((sign, at) => [sign, "0123456789123"[at]]));
const DIGITS = [...KANJI.keys()].join("");
const SCALE_SIGNS = Object.keys(JAPANESE_SCALES).join("");
const DIGITS_AND_SCALES = DIGITS + SCALE_SIGNS;
const COUNTERS =
  "[人匹本個枚冊台時年月日回杯階歳つ円分名件社校室票倍割軒棟頭羽泊坪週秒錠粒箱袋皿曲番章巻位号]|[かヶカケ][所月国]|[キトグリドパポユセミメ][ァ-ー]";
const NO_NUMBER = `[万億兆萬]|十分(?!間)|一(?![円年月]|[${DIGITS_AND_SCALES}])`;
const DECIMAL_NUMBER = "([0-9]{1,9})(?:([.,' ’])([0-9]{3}(?:\\2[0-9]{3}){0,5}))?(?:[.,]([0-9]{1,9}))?";
const ERAS = { 令和: 2018, 平成: 1988, 昭和: 1925, 大正: 1911, 明治: 1867, r: 2018, h: 1988, s: 1925 };
const ERA = "(令和|平成|昭和|大正|明治) ?([0-9]{1,2}|元|[二三四五六]?十[一二三四五六七八九]?|[一二三四五六七八九])";
const JAPANESE_YEAR = `([0-9]{4}|[${DIGITS.slice(0, 10)}]{4})`;
const JAPANESE_DAY =
  "(0?[1-9]|1[0-2]|十[一二]?|[一二三四五六七八九]) ?月 ?" +
  "(0?[1-9]|[12][0-9]|3[01]|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九]) ?日";
const JAPANESE_HOUR = "([01]?[0-9]|2[0-4]|二?十[一二三四五六七八九]?|[一二三四五六七八九])";
const JAPANESE_MINUTE = "(?:([0-5]?[0-9]|[二三四五]?十[一二三四五六七八九]?|[一二三四五六七八九])分|(半))";
const ALSO = "(?:[(][^()]{1,12}[)])?"; // the same year of the other calendar
const SOME_DIGIT = new RegExp(`[0-9元${DIGITS_AND_SCALES}]`);

const two = (number) => String(number).padStart(2, "0");
const unzeroed = (digits) => digits.replace(/^0+/, "");

/** A number in a text, with the normal forms of its words: a date with a year has two, the day and the year.
 * @typedef {{start: number, end: number, words: string[][]}} Found */

/** The numbers of a text, in their order; the text is folded as in words.js. @param {string} text @returns {Found[]} */
export function findNumbers(text) {
  const found = [];
  if (!SOME_DIGIT.test(text)) return found;
  for (const [pattern, read] of NOTATIONS) {
    text = text.replace(pattern, (written, ...rest) => {
      const at = rest.findIndex((part) => typeof part === "number");
      found.push({ start: rest[at], end: rest[at] + written.length, words: read(...rest.slice(0, at).map((part) => part ?? "")) });
      return "\0".repeat(written.length); // the other notations do not see it
    });
  }
  return found.sort((a, b) => a.start - b.start);
}

/** The fractions and codes of a text that a search compares whole: ½, 2 3/4, half, 0.5, XK-42. @returns {Found[]} */
export function findFractions(text) {
  const found = [];
  const add = (match, words) => found.push({ start: match.index, end: match.index + match[0].length, words });
  for (const match of text.matchAll(FRACTION)) add(match, [[fraction(...match.slice(match[3] ? 1 : 4))]]);
  for (const match of text.matchAll(HALF_WORD)) add(match, [[match[0], value("0", "5")]]);
  for (const match of text.matchAll(SHORT_DECIMAL)) add(match, [1, 2].map((group) => [match[group], value(match[1], match[2])]));
  for (const match of text.matchAll(CODE)) {
    const groups = match[0].split("-");
    const joined = groups.join("");
    if (joined.length >= SHORTEST_CODE || /[^0-9]/.test(joined)) add(match, groups.map((group) => [group, joined]));
  }
  return found.sort((a, b) => a.start - b.start);
}

const fraction = (whole, over, under) => value(...(Number(whole || 0) + over / under).toFixed(3).split("."));

function value(whole, fraction = "") {
  const kept = fraction.replace(/0+$/, "");
  return (unzeroed(whole) || "0") + (kept && DECIMAL + kept);
}

function shifted(form, exponent) {
  const [whole, fraction = ""] = form.split(DECIMAL);
  return value(whole + fraction.slice(0, exponent).padEnd(exponent, "0"), fraction.slice(exponent));
}

function timeOfDay(hour, minute = "", half = "") {
  const number = Number(hour);
  const minutes = (minute || "00").padStart(2, "0");
  const clock = `c${two(number % 12)}${minutes}`;
  if (IN_EVENING.test(half)) return [[`t${(number % 12) + 12}${minutes}`, clock]];
  if (IN_MORNING.test(half)) return [[`t${two(number % 12)}${minutes}`]];
  return [[`t${two(number)}${minutes}`, ...(!half && number > 0 && number <= 12 ? [clock] : [])]];
}

function date(year, ...days) {
  const forms = [...new Set(days.map(([month, day]) => `d${two(Number(month))}${two(Number(day))}`))];
  const whole = year.length === 2 ? (year < "50" ? "20" : "19") + year : year;
  return whole ? [forms, [whole]] : [forms];
}

function either(one, sign, other, year) {
  const dayFirst = Number(other) <= 12 ? [[other, one]] : [];
  return date(year, ...dayFirst, ...(Number(one) <= 12 && (sign !== "." || !dayFirst.length) ? [[one, other]] : []));
}

const numeric = (year, month, day) => date(year, [month, day]);
const named = (day, month, year) => date(year, [MONTH_OF.get(month), day]);

const monthFirst = (month, day, year) => named(day, month, year);
const japaneseTime = (half, hour, minute, thirty) =>
  timeOfDay(integer(hour), thirty ? "30" : minute && integer(minute), half);

const japaneseDate = (year, month, day) => date(year && integer(year), [integer(month), integer(day)]);

function era(name, year, month, day) {
  const whole = String(ERAS[name] + (year === "元" ? 1 : Number(integer(year))));
  return month ? date(whole, [integer(month), integer(day)]) : [[whole]];
}

function integer(written) {
  let [total, section, digits] = [0n, 0n, ""];
  for (const sign of written.replaceAll(",", "")) {
    const exponent = JAPANESE_SCALES[sign];
    if (!exponent) {
      digits += KANJI.get(sign) ?? sign;
      continue;
    }
    const number = BigInt(digits);
    digits = "";
    if (exponent < 4) section += (number || 1n) * 10n ** BigInt(exponent);
    else [total, section] = [total + (section + number || 1n) * 10n ** BigInt(exponent), 0n];
  }
  return String(total + section + BigInt(digits));
}

function phone(written) {
  const digits = written.replace(/[^0-9]/g, "");
  const whole = unzeroed(digits);
  let code = 0;
  if (written.includes("+") || digits.startsWith("00")) code = /^[17]/.test(whole) ? 1 : TWO_DIGITS.test(whole) ? 2 : 3;
  else if (digits.length === 11 && /^[178]/.test(digits)) code = 1;
  const own = unzeroed(whole.slice(code));
  return [own ? [...new Set([whole.slice(0, code) + own, own])] : [value(digits)]];
}

function grouped(first, sign, others, fraction) {
  const groups = others.replace(/[^0-9]/g, "");
  const whole = value(first + groups, fraction);
  return [".,".includes(sign) && /^..[1-9]$/.test(groups) && !fraction ? [whole, value(first, groups)] : [whole]];
}

function scaled(first, sign, others, fraction, scale) {
  const forms = grouped(first, sign, others, fraction)[0].map((form) => shifted(form, EXPONENTS.get(scale)));
  return [GLUED_SCALES[3].includes(scale) && !others && !fraction ? [...forms, first + scale] : forms];
}

const japanese = (written) => [[integer(written)]];
const iban = (written) => [[written.replace(/[ -]/g, "")]];
const amount = (whole, fraction) => [[value(whole.replaceAll(",", ""), fraction)]];

const FRACTION = new RegExp(
  "([0-9]{0,9}) ?([1-9])⁄([2-9])(?![0-9])" +
    `|(?<![0-9.,/])(?<![0-9${LETTERS}]-)(?:([0-9]{1,3}) )?([1-9])/([2-9])(?![0-9/]|[.,-][0-9])`,
  "g",
);
const HALVES =
  "half halves halb halbe halben halber halbes hälfte demi demie moitié media medio mitad mezza mezzo mezz metà meia" +
  " meio metade halve helft половина половину половины половиной";
const NO_HALF = ["social", "mass", "new", "la", "las", "los", "il", "nel", "по"].map((word) => `(?<!${word} )`).join("");
const HALF_WORD = new RegExp(`${NO_HALF}${BEGIN}(?:${HALVES.replaceAll(" ", "|")})${END}`, "g");
// Short groups of letters and digits, one of them with a digit.
const CODE = new RegExp(
  `(?<![0-9${LETTERS}-])(?=[a-z-]{0,9}[0-9])(?:[a-z]{1,4}|[0-9]{1,12})(?:-(?:[a-z]{1,4}|[0-9]{1,12})){1,3}(?![0-9${LETTERS}-])`,
  "g",
);
const SHORTEST_CODE = 6; // digits; fewer are pages or years
const SHORT_DECIMAL = /(?<![0-9.,])([0-9]{1,3})[.,]([0-9]?[1-9])(?![0-9⁄]|[.,][0-9])/g; // 2.5 and 2,5, not 3.10

const NOTATIONS = [
  [`${BEGIN}([a-z]{2}[0-9]{2}[ -]?[a-z0-9]{4}(?:[ -]?[0-9][0-9a-z]{3}){2,6}(?:[ -]?[0-9][0-9a-z]{0,2})?)${END}`, iban],
  [`${BEGIN}([0-9]{4})[-/.]${MONTH}[-/.]${DAY}${STOP}`, numeric],
  [`(?<![0-9])(?<![0-9)][ /-])((?:19|20)[0-9]{2})${MM}${DD}${STOP}`, numeric],
  [`${BEGIN}${JAPANESE_YEAR} ?年${ALSO} ?${JAPANESE_DAY}`, japaneseDate],
  [`${ERA} ?年${ALSO}(?: ?${JAPANESE_DAY})?`, era],
  [`${BEGIN}([rhs])([0-9]{1,2}|元)年${ALSO}(?: ?${JAPANESE_DAY})?`, era],
  [`${ERA}[./-] ?${MONTH}[./-] ?${DAY}${STOP}`, era],
  [`${BEGIN}([rhs])[.]?([0-9]{1,2})[./-]${MONTH}[./-]${DAY}${STOP}(?![.][0-9])`, era],
  [`${BEGIN}(?<![${DIGITS_AND_SCALES}])()${JAPANESE_DAY}`, japaneseDate],
  [`${BEGIN}${DAY}([./-]) ?${MONTH}\\2 ?${YEAR}${STOP}(?![.][0-9])`, either],
  [`${BEGIN}${MONTH}([/-])${DAY}\\2${YEAR}${STOP}`, either],
  [`${BEGIN}(?<![./-])${DD}(/)${MM}(?![0-9/])()`, either],
  ...["-", "/", "[.]", ""].map((sign) => [`${BEGIN}${DAY}${sign}(${NAME}|${SHORT})${sign}${YEAR}${END}`, named]),
  [`${BEGIN}${DAY}${NTH} (${NAME}|${SHORT})[.]?,? ?['’]([0-9]{2})${END}`, named],
  [`${BEGIN}${DAY}${NTH}[ -](?:of |de |di )?(${NAME})(?:,?[ -](?:de |del |of )?([0-9]{4}))?${END}`, named],
  [`${BEGIN}${DAY}${NTH}[ -](?:de |di )?(${SHORT})[.]?,?[ -](?:de |del )?([0-9]{4})${END}`, named],
  [`${BEGIN}(${NAME})[ -]${DAY}(?:st|nd|rd|th)?(?:,? ([0-9]{4}))?(?![0-9:${LETTERS}])`, monthFirst],
  [`${BEGIN}(${SHORT})[.]?[ -]${DAY}(?:st|nd|rd|th)?,? ([0-9]{4})${END}`, monthFirst],
  [`(午前|午後) ?${JAPANESE_HOUR}時(?!間)${JAPANESE_MINUTE}?`, japaneseTime],
  [`${BEGIN}(?<![${DIGITS_AND_SCALES}])()${JAPANESE_HOUR}時${JAPANESE_MINUTE}`, japaneseTime],
  [`(?<=\\bore )${HOUR}[.:]${MINUTE}(?![0-9:]| ?(?:${MORNING}|${EVENING}))`, (hour, minute) => timeOfDay(hour, minute, "uhr")],
  [`${BEGIN}${HOUR} ?(?:h|u|uhr|uur|heures?|ч[.]?|час(?:а|ов)?) ?${MINUTE}(?: ?(?:min|мин|минут[аы]?)[.]?)?${END}()`, timeOfDay],
  [`(?:${BEGIN}|(?<=\0t))${HOUR}:${MINUTE}(?::[0-5][0-9])?(?: ?${HALF}(?![${LETTERS}]))?(?![0-9:])`, timeOfDay],
  [`${BEGIN}${HOUR}[.]${MINUTE} ?${HALF}${END}`, timeOfDay],
  [`${BEGIN}${HOUR}() ?${HALF}${END}`, timeOfDay],
  [`${BEGIN}(?<![0-9][.,])${HOUR}() ?([hu]|(?:heures?|horas|час(?:а|ов)?)(?! (?:et|[ye]|с) ))${END}`, timeOfDay],
  [`(?<![0-9${LETTERS}+])([(]?[+][0-9](?:[ ()./-]{0,3}[0-9]){6,14})${STOP}`, phone],
  [`${BEGIN}(?<![0-9][.,])([(]?0(?![.,])[0-9](?:[ ()./-]{0,3}[0-9]){7,13})${STOP}`, phone],
  [`${BEGIN}(0[0-9]{6,7}|[178][0-9]{10})${STOP}`, phone],
  [`${BEGIN}((?=(?:-?[0-9]){9})[0-9]{1,7}(?:-[0-9]{1,7}){2,5})${STOP}`, phone],
  [`${BEGIN}((?:1[ .-])?[(]?[2-9][0-9]{2}[)]?[ .-]{1,2}[0-9]{3}[ .-][0-9]{4})${STOP}`, phone],
  [`${BEGIN}(8 ?[(]?[0-9]{3}[)]?[ -]?[0-9]{3}[ -][0-9]{2}[ -][0-9]{2})${STOP}`, phone],
  [`${BEGIN}((?=(?:[ -]?[0-9]){8})[0-9]{2,4}(?:[ -][0-9]{2,4}){2,5})${STOP}`, phone],
  [
    `(?<![0-9][.,])(?<![0-9${DIGITS_AND_SCALES}])((?=[0-9])` +
      `(?:(?:[0-9]{1,3}(?:,[0-9]{3}){1,3}|[0-9]{1,12}|[${DIGITS}])?[${SCALE_SIGNS}]){1,8}` +
      `(?:[0-9]{1,3},[0-9]{3}|[0-9]{1,7}|[${DIGITS}])?)(?![0-9${DIGITS}])`,
    japanese,
  ],
  [`(?<![0-9${DIGITS_AND_SCALES}])(?!${NO_NUMBER})([${DIGITS_AND_SCALES}]{1,16}(?=${COUNTERS})|[${DIGITS_AND_SCALES}]{1,15}[万億兆萬]|[${DIGITS_AND_SCALES}]{4,16})`, japanese],
  [`${BEGIN}(?<![0-9][.,])${DECIMAL_NUMBER}[ -]?(${SCALE})[.]?${END}`, scaled],
  [`${BEGIN}(?<![0-9][.,])${DECIMAL_NUMBER}(${GLUED_SCALE})${END}`, scaled],
  [`${BEGIN}(?<![0-9][.,])${DECIMAL_NUMBER} ?(${MONEY_SCALE})[.]?(?= ?(?:[€$£¥]|eur|usd|chf|gbp|руб|р[.]))`, scaled],
  [`(?:(?<=[€$£¥])|(?<=[€$£¥] ))${DECIMAL_NUMBER} ?(${MONEY_SCALE})${END}`, scaled],
  [`${BEGIN}(?<![0-9][.,])${DECIMAL_NUMBER}(千万|百万|[${SCALE_SIGNS}])`, scaled],
  [`${BEGIN}(?<![0-9][.,])([1-9][0-9]{0,2})([.,' ’])([0-9]{3}(?:\\2[0-9]{3}){0,5})(?:(?!\\2)[.,]([0-9]{1,9}))?(?![.,]?[0-9])`, grouped],
  [`${BEGIN}([1-9][0-9]?(?:,[0-9]{2}){1,5},[0-9]{3})(?:[.]([0-9]{1,9}))?(?![.,]?[0-9])`, amount],
  [`${BEGIN}(?<![0-9][.,])([1-9][0-9]{3,15})[.,]([0-9]{1,9})(?![.,]?[0-9])`, amount],
].map(([pattern, read]) => [new RegExp(pattern, "g"), read]);
