// Numbers that a search compares whole, in their normal forms, as in xsent/numbers.py, which explains the notations.

import TABLES from "./notations.js";

const DECIMAL = "\u066b"; // the point of a normal form
const { eras: ERAS, japanese_scales: JAPANESE_SCALES, kanji: KANJI } = TABLES;
const MONTHS = [TABLES.months, TABLES.short_months];
const MONTH_OF = new Map(MONTHS.flatMap((rows) => rows.flatMap((row, i) => row.split(" ").map((name) => [name, i + 1]))));
const [SCALES, GLUED_SCALES, MONEY_SCALES] = [TABLES.scales, TABLES.glued_scales, TABLES.money_scales].map(
  (table) => new Map(table.flatMap(([exponent, words]) => words.split(" ").map((word) => [word.replace("_", " "), exponent]))),
);
const EXPONENTS = new Map([
  ...SCALES,
  ...GLUED_SCALES,
  ...MONEY_SCALES,
  ...Object.entries({ 千万: 7, 百万: 6, ...JAPANESE_SCALES }),
]);
const PARTS = {
  NAME: MONTHS[0].join(" ").replaceAll(" ", "|"),
  SHORT: MONTHS[1].join(" ").replaceAll(" ", "|"),
  SCALE: [...SCALES.keys()].join("|"),
  GLUED_SCALE: [...GLUED_SCALES.keys()].join("|"),
  MONEY_SCALE: [...MONEY_SCALES.keys()].join("|"),
  DIGITS: Object.keys(KANJI).join(""),
  SCALE_SIGNS: Object.keys(JAPANESE_SCALES).join(""),
  HALVES: TABLES.halves.replaceAll(" ", "|"),
  INITIALS: [...new Set(TABLES.halves.split(" ").map((word) => word[0]))].join(""),
};
for (const [name, template] of Object.entries(TABLES.parts)) PARTS[name] = pattern(template);
const [IN_MORNING, IN_EVENING] = [PARTS.MORNING, PARTS.EVENING].map((half) => new RegExp(`^(?:${half})$`));
const SOME_DIGIT = new RegExp(pattern("[0-9元<DIGITS_AND_SCALES>]"));
const [FRACTION, HALF_WORD, CODE, SHORT_DECIMAL] = [PARTS.FRACTION, PARTS.HALF_WORD, PARTS.CODE, PARTS.SHORT_DECIMAL].map(
  (part) => new RegExp(part, "g"),
);
const SHORTEST_CODE = 6; // digits; fewer are pages or years
const TWO_DIGITS = /^(?:2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58])/; // country codes, ITU-T E.164

/** A pattern with its parts. @param {string} template */
function pattern(template) {
  return template.replace(/<([A-Z_]+)>/g, (_, name) => PARTS[name]);
}

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
    const groups = match[0].match(/[a-z]+|[0-9]+/g);
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
  const number = IN_EVENING.test(half) ? (hour % 12) + 12 : IN_MORNING.test(half) ? hour % 12 : hour;
  return [[`t${two(Number(number))}${(minute || "00").padStart(2, "0")}`]];
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

const named = (day, month, year) => date(year, [MONTH_OF.get(month), day]);

function era(name, year, month, day) {
  const whole = String(ERAS[name] + (year === "元" ? 1 : Number(integer(year))));
  return month ? date(whole, [integer(month), integer(day)]) : [[whole]];
}

function integer(written) {
  let [total, section, digits] = [0n, 0n, ""];
  for (const sign of written.replaceAll(",", "")) {
    const exponent = JAPANESE_SCALES[sign];
    if (!exponent) {
      digits += KANJI[sign] ?? sign;
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
  return [GLUED_SCALES.has(scale) && !others && !fraction ? [...forms, first + scale] : forms];
}

// Other numbers are words as they are written.
const READERS = {
  iban: (written) => [[written.replace(/[ -]/g, "")]],
  numeric: (year, month, day) => date(year, [month, day]),
  japaneseDate: (year, month, day) => date(year && integer(year), [integer(month), integer(day)]),
  era,
  either,
  named,
  monthFirst: (month, day, year) => named(day, month, year),
  japaneseTime: (half, hour, minute, thirty) => timeOfDay(integer(hour), thirty ? "30" : minute && integer(minute), half),
  timeOfDay,
  phone,
  japanese: (written) => [[integer(written)]],
  scaled,
  grouped,
  amount: (whole, fraction) => [[value(whole.replace(/[^0-9]/g, ""), fraction)]],
};
const NOTATIONS = TABLES.notations
  .filter(([, reader]) => reader in READERS)
  .map(([, reader, template]) => [new RegExp(pattern(template), "g"), READERS[reader]]);
