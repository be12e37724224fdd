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
const NTH = "(?:[.]|st|nd|rd|th|er|o|a)?";
const [HOUR, MINUTE] = ["([01]?[0-9]|2[0-4])", "([0-5][0-9])"];
const MORNING = "a[.]? ?m[.]?|de la mañana|da manhã|di mattina|du matin|uhr morgens|утра|午前";
const EVENING =
  "p[.]? ?m[.]?|de la tarde|de la noche|da tarde|da noite|del pomeriggio|di sera|du soir|de l['’]après-midi" +
  "|uhr abends|uhr nachmittags|вечера|午後";
const HALF = `(${MORNING}|${EVENING}|uhr|uur)`;
const [IN_MORNING, IN_EVENING] = [MORNING, EVENING].map((half) => new RegExp(`^(?:${half})$`));
const TWO_DIGITS = /^(?:2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58])/; // country codes, ITU-T E.164

const two = (number) => String(number).padStart(2, "0");
const unzeroed = (digits) => digits.replace(/^0+/, "");

/** A number in a text, with the normal forms of its words: a date with a year has two, the day and the year.
 * @typedef {{start: number, end: number, words: string[][]}} Found */

/** The numbers of a text, in their order; the text is folded as in words.js. @param {string} text @returns {Found[]} */
export function findNumbers(text) {
  const found = [];
  if (!/[0-9]/.test(text)) return found;
  for (const [pattern, read] of NOTATIONS) {
    text = text.replace(pattern, (written, ...rest) => {
      const at = rest.findIndex((part) => typeof part === "number");
      found.push({ start: rest[at], end: rest[at] + written.length, words: read(...rest.slice(0, at).map((part) => part ?? "")) });
      return "\0".repeat(written.length); // the other notations do not see it
    });
  }
  return found.sort((a, b) => a.start - b.start);
}

function value(whole, fraction = "") {
  const kept = fraction.replace(/0+$/, "");
  return (unzeroed(whole) || "0") + (kept && DECIMAL + kept);
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
const halfFirst = (half, hour, minute) => timeOfDay(hour, minute, half);

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

const iban = (written) => [[written.replace(/[ -]/g, "")]];
const amount = (whole, fraction) => [[value(whole.replaceAll(",", ""), fraction)]];

const NOTATIONS = [
  [`${BEGIN}([a-z]{2}[0-9]{2}[ -]?[a-z0-9]{4}(?:[ -]?[0-9][0-9a-z]{3}){2,6}(?:[ -]?[0-9][0-9a-z]{0,2})?)${END}`, iban],
  [`${BEGIN}([0-9]{4})[-/.]${MONTH}[-/.]${DAY}${STOP}`, numeric],
  [`${BEGIN}(?:([0-9]{4})年 ?)?${MONTH}月 ?${DAY}日`, numeric],
  [`${BEGIN}${DAY}([./-]) ?${MONTH}\\2 ?${YEAR}${STOP}(?![.][0-9])`, either],
  [`${BEGIN}${MONTH}([/-])${DAY}\\2${YEAR}${STOP}`, either],
  [`${BEGIN}${DAY}${NTH}[ -](?:of |de |di )?(${NAME})(?:,?[ -](?:de |del |of )?([0-9]{4}))?${END}`, named],
  [`${BEGIN}${DAY}${NTH}[ -](?:de |di )?(${SHORT})[.]?,?[ -](?:de |del )?([0-9]{4})${END}`, named],
  [`${BEGIN}(${NAME})[ -]${DAY}(?:st|nd|rd|th)?(?:,? ([0-9]{4}))?(?![0-9:${LETTERS}])`, monthFirst],
  [`${BEGIN}(${SHORT})[.]?[ -]${DAY}(?:st|nd|rd|th)?,? ([0-9]{4})${END}`, monthFirst],
  [`(午前|午後)${HOUR}時(?!間)(?:([0-5]?[0-9])分)?()`, halfFirst],
  [`${BEGIN}${HOUR} ?(?:h|uhr|uur) ?${MINUTE}${END}()`, timeOfDay],
  [`${BEGIN}${HOUR}時([0-5]?[0-9])分()`, timeOfDay],
  [`(?:${BEGIN}|(?<=\0t))${HOUR}:${MINUTE}(?::[0-5][0-9])?(?: ?${HALF}(?![${LETTERS}]))?(?![0-9:])`, timeOfDay],
  [`${BEGIN}${HOUR}[.]${MINUTE} ?${HALF}${END}`, timeOfDay],
  [`${BEGIN}${HOUR}() ?${HALF}${END}`, timeOfDay],
  [`${BEGIN}${HOUR}() ?(h)${END}`, timeOfDay],
  [`(?<![0-9${LETTERS}+])([(]?[+][0-9](?:[ ()./-]{0,3}[0-9]){6,14})${STOP}`, phone],
  [`${BEGIN}([(]?0(?![.,])[0-9](?:[ ()./-]{0,3}[0-9]){7,13})${STOP}`, phone],
  [`${BEGIN}(0[0-9]{6,7}|[178][0-9]{10})${STOP}`, phone],
  [`${BEGIN}((?=(?:-?[0-9]){9})[0-9]{1,7}(?:-[0-9]{1,7}){2,5})${STOP}`, phone],
  [`${BEGIN}((?:1[ .-])?[(]?[2-9][0-9]{2}[)]?[ .-]{1,2}[0-9]{3}[ .-][0-9]{4})${STOP}`, phone],
  [`${BEGIN}(8 ?[(]?[0-9]{3}[)]?[ -]?[0-9]{3}[ -][0-9]{2}[ -][0-9]{2})${STOP}`, phone],
  [`${BEGIN}([0-9]{2,4}(?:[ -][0-9]{2,4}){3,5})${STOP}`, phone],
  [`${BEGIN}(?<![0-9][.,])([1-9][0-9]{0,2})([.,' ’])([0-9]{3}(?:\\2[0-9]{3}){0,5})(?:(?!\\2)[.,]([0-9]{1,9}))?(?![.,]?[0-9])`, grouped],
  [`${BEGIN}([1-9][0-9]?(?:,[0-9]{2}){1,5},[0-9]{3})(?:[.]([0-9]{1,9}))?(?![.,]?[0-9])`, amount],
  [`${BEGIN}(?<![0-9][.,])([1-9][0-9]{3,15})[.,]([0-9]{1,9})(?![.,]?[0-9])`, amount],
].map(([pattern, read]) => [new RegExp(pattern, "g"), read]);
