// Reads Markdown without what its writer hid, and its front matter, as xsent_apps/notes/markdown.py does.

const FENCED = /^(---|\+\+\+|;;;)[ \t]*(?:yaml|toml|json)?[ \t]*\n([^]*?\n)?(?:\1|\.\.\.)[ \t]*(?:\n|$)/i;
const OBJECT = /^()(\{\n[^]*?\n\})[ \t]*\n/;
const PROPERTIES = /^()((?:[\w./-]+::(?:[ \t][^\n]*)?\n)+)(?=\s*\S)/; // of a page of Logseq
const TITLE_BLOCK = /^%[ \t]+(\S[^\n]*)\n(?:[ \t]+\S[^\n]*\n)*(?:%[^%\n]*\n(?:[ \t]+\S[^\n]*\n)*){0,2}(?=[ \t]*\n)/; // of Pandoc
const JOPLIN = /\n\nid: [0-9a-f]{32}\n(?:\w+:[^\n]*\n)*type_: \d+\s*$/; // below a note of its raw export
const FIELD = /^([\w-]+)[ \t]*(?:::|[:=])[ \t]*(.*)/;
const FIRST_FIELD = /^\s*(?:\{|[\w-]+[ \t]*:)/;
const FIRST_OF_TOML = /^\s*(?:#[^\n]*\s*)*[\w-]+[ \t]*=/;
const NAMES = new Set("title aliases alias tags tag keywords".split(" ")); // fields that help to find a note

const HIDDEN = new RegExp(
  [
    /(?<fenced>^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?<fence>`{3,}(?=[^`\n]*$)|~{3,}(?!~))[^\n]*(?:[^]*?^[ \t>]*\k<fence>[`~]*[ \t]*$|[^]*))/u,
    /(?<span>(?<!`)(?<ticks>`+)(?!`)(?:(?!\n[ \t]*\n)[^])+?(?<!`)\k<ticks>(?!`)|\\[^\n\w])/u,
    /｜(?<word>[^《》｜\n]{1,40})《[^《》\n]{1,40}》|(?<=[\p{sc=Han}々〆ヶ〇])《[ぁ-ヿ\s]{1,40}》/u, // furigana
    /\{(?<braced>[^\{\}\|\n]{1,40})(?:\|[ぁ-ヿ\s]{1,40})+\}|\[(?<listed>[^\[\]\n]{1,40})\]\{[ぁ-ヿ\s]{1,40}\}|<\/?(?:ruby|rb|rt|rp|rtc)\b[^<>]*>/u,
    // Marks of programs that keep notes.
    /^ {0,3}\[[^\]\n]{0,99}\]:[ \t]*#(?:[ \t][^\n]*)?$|^[ \t]*(?:id|collapsed|logseq\.[\w.\-]+)::[^\n]*$/u,
    /^[ \t]*(?:SCHEDULED|DEADLINE):[ \t]*<[^>\n]*>[ \t]*$|^[ \t>]*:{3,}[ \t]*(?:\{[^\n\{\}]*\}|[\w\-]+)?[ \t]*:*$/u,
    /^[\-*+] [^\n]*\n\{: ?toc\b[^\n]*$|^[ \t]*\{(?::[^\{\}\n:]*|%(?! comment)[^%\n]*%)\}[ \t]*$/u,
    /(?<=> )\[![\w\-]+\][\-+]? ?|(?<=\S)[ \t]+\^[A-Za-z0-9\-]{4,}$/u,
    // Comments.
    /<!--(?:-?>|[^]*?-->)|^[ \t>]*(?:[\-*+][ \t]+)?(?:%%(?!%)[^]*?%%|:(?:LOGBOOK|PROPERTIES):[ \t]*$[^]*?:END:)/u,
    /(?<![\w%])%%(?!%)[^\n]*?%%|\{\/\*[^]*?\*\/\}|\{% comment %\}[^]*?\{% endcomment %\}|\{::comment\}[^]*?\{:\/comment\}/u,
  ]
    .map(({ source }) => source)
    .join("|"),
  "gmu",
);

// With more lines below it if it is wrapped.
const DATA =
  /(?<!\w)data:(?:image|audio|video|font|application|text)\/[\w.+-]{1,99}(?:;[\w=.+-]{1,80}){0,5},[^\s()[\]<>"']*(?:[ \t]*\n[ \t>]*[A-Za-z0-9+/]{40,}=*(?![^\s)\]>"']))*/g;
const RUN = /(?<![\w+/.:@?=&%#-])[A-Za-z0-9+/]{200,}={0,2}/g; // data without an address

/** The visible text of a note; title, aliases and tags of its front matter name the whole. @param {string} note */
export function readMarkdown(note) {
  const [front, content] = frontMatter(note);
  const shown = withoutData(note.slice(front.length).replace(JOPLIN, ""))
    .replace(/<r(?:t|p|tc)\b[^<>]*>[^<>]*(?:<\/r(?:t|p|tc)\s*>|(?=<\/?r(?:uby|b|t|p)\b))/g, "")
    .replace(HIDDEN, (found, ...rest) => {
      const { fenced, span, word, braced, listed } = rest.at(-1);
      return fenced ?? span ?? word ?? braced ?? listed ?? emptyLines(found);
    });
  return { text: shown, names: content ? namesIn(content) : [] };
}

const emptyLines = (text) => text.replace(/[^\n]+/g, "");

/** Front matter and what it contains. @param {string} text */
function frontMatter(text) {
  const [block, title] = TITLE_BLOCK.exec(text) ?? [];
  if (block) return [block, `title: ${title}`];
  const fenced = FENCED.exec(text);
  if (fenced) return (fenced[1] === "+++" ? FIRST_OF_TOML : FIRST_FIELD).test(fenced[2] ?? "") ? [fenced[0], fenced[2]] : ["", ""];
  const found = OBJECT.exec(text) ?? PROPERTIES.exec(text); // or a text
  return found && namesIn(found[2]).some(Boolean) ? [found[0], found[2]] : ["", ""];
}

/** The title, aliases and tags in front matter. @param {string} front */
function namesIn(front) {
  try {
    return Object.entries(JSON.parse(front)).flatMap(([key, value]) => (NAMES.has(key.toLowerCase()) ? [value].flat().map(String) : []));
  } catch {
    // YAML, TOML or properties
  }
  let field = "";
  return front.split("\n").flatMap((line) => {
    const [, name, value] = FIELD.exec(line) ?? [];
    field = name?.toLowerCase() ?? (/^\[[\w.]+\]/.test(line) ? "" : field); // a table of TOML
    const listed = value ?? line.trim().replace(/^-/, "");
    const list = field === "title" ? [listed] : listed.replace(/[[\]]/g, "").split(",");
    const names = list.map((one) => one.replace(/^[\s"'#]+|[\s"'#]+$/g, ""));
    return NAMES.has(field) ? names.filter((one) => !/^[>|][+-]?\d?$/.test(one)) : []; // a sign that lines follow
  });
}

/** A text without pictures in base64, whose words stay. @param {string} text */
function withoutData(text) {
  const here = text
    .replace(DATA, (found) => `data:,${emptyLines(found)}`)
    .replace(/!?\[([^[\]]*)\]\(<?data:,>?[^()\n]*\)/g, "$1")
    .replace(/^[ \t]*\[[^\]\n]*\]:[ \t]*<?data:,>?.*$/gm, "")
    .replace(/<(?:img|image)\b[^<>]*data:,[^<>]*>/gi, (tag) => /\balt\s*=\s*["']([^"']*)/i.exec(tag)?.[1] ?? "");
  const known = here === text ? text : here.replace(/!\[\]\[[^[\]\n]*\]/g, "").replaceAll("data:,", "");
  return known.replace(RUN, (run) => ([/[a-z]/, /[A-Z]/, /\d/].every((kind) => kind.test(run)) ? "" : run));
}
