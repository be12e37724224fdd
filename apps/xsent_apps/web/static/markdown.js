// Reads Markdown as it is shown, and its front matter, as xsent_apps/notes/markdown.py does.

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
    /(?<span>(?<!`)(?<ticks>`+)(?!`)(?:(?!\n[ \t]*\n)[^])+?(?<!`)\k<ticks>(?!`))|\\(?<escaped>[!-\/:-@\[-`\{\}~])/u,
    /｜(?<word>[^《》｜\n]{1,40})《[^《》\n]{1,40}》|(?<=[\p{sc=Han}々〆ヶ〇])《[ぁ-ヿ\s]{1,40}》/u, // furigana
    /\{(?<braced>[^\{\}\|\n]{1,40})(?:\|[ぁ-ヿ\s]{1,40})+\}|\[(?<listed>[^\[\]\n]{1,40})\]\{[ぁ-ヿ\s]{1,40}\}|<\/?(?:ruby|rb|rt|rp|rtc)\b[^<>]*>/u,
    // Marks of programs that keep notes.
    /^ {0,3}\[[^\]\n]{0,99}\]:[ \t]*#(?:[ \t][^\n]*)?$|^[ \t]*(?:id|collapsed|background-color|(?:card|hl|query)-[\w\-]+|logseq\.[\w.\-]+)::[^\n]*$/u,
    /^[ \t]*(?:SCHEDULED|DEADLINE):[ \t]*<[^>\n]*>[ \t]*$|^[ \t>]*:{3,}[ \t]*(?:\{[^\n\{\}]*\}|[\w\-]+)?[ \t]*:*$/u,
    /^[ \t]*(?:!!!|\?\?\?\+?|===) +(?:[\w\-]+(?: +(?=")|[ \t]*$)|(?="))/u, // MkDocs
    /^[ \t]*\\(?:newpage|pagebreak|clearpage|tableofcontents)[ \t]*$|^[\-*+] [^\n]*\n\{: ?toc\b[^\n]*$|^[ \t]*\{(?::[^\{\}\n:]*|%(?! comment)[^%\n]*%)\}[ \t]*$/u,
    /^[ \t]*\[\[?_?[Tt][Oo][Cc]_?\]?\][ \t]*$|^[ \t]*(?:[\-*+]|\d{1,3}[.\)])[ \t]+\[[^\]\n]*\]\(#[^\)\n]*\)[ \t]*$/u, // a table of contents
    /(?:(?<=[\)\]`])|(?<=\S)[ \t]+(?=\{[^\{\}\n]*\}[ \t]*$))\{ ?(?:: ?[a-z]|#[A-Za-z0-9]|[.][A-Za-z])[^\{\}\n]*\}/u, // attributes
    /\{\{[<%] *figure(?= )[^\{\}\n]{0,300}? (?:caption|alt)="(?<caption>[^"\{\}\n]*)"[^\{\}\n]{0,300}\}\}/u, // Hugo
    /\{\{(?:[<%][^\{\}\n]*(?<=[>%])|(?:query|embed|renderer|video)\b[^\{\}\n]*)\}\}|\(\([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\)\)/u, // Hugo, Logseq
    /(?<=[^\s\|])\[\^[^\[\]\s]{1,40}\](?!:)|^ {0,3}\[\^[^\[\]\s]{1,40}\]:[ \t]+|(?<=\S)\\$/u, // numbers of footnotes, a line's end
    /(?<=> )\[![\w\-]+\][\-+]? ?|(?:(?<=\S)[ \t]|^)[ \t]*\^[A-Za-z0-9\-]{4,}[ \t]*$| ?\[-?@[\w:.\-]+[^\[\]\n]*\](?![\(:\[])/u,
    // Comments.
    /<!--(?:-?>|[^]*?-->)|<(?<unseen>style|script)[\s>][^]*?<\/\k<unseen>>|^[ \t>]*(?:[\-*+][ \t]+)?(?:%%(?!%)[^]*?%%|:(?:LOGBOOK|PROPERTIES):[ \t]*$[^]*?:END:|#\+BEGIN_QUERY[^]*?#\+END_QUERY)/u,
    /(?<![\w%])%%(?!%)[^\n]*?%%|\{\/\*[^]*?\*\/\}|\{% comment %\}[^]*?\{% endcomment %\}|\{::comment\}[^]*?\{:\/comment\}/u,
  ]
    .map(({ source }) => source)
    .join("|"),
  "gmu",
);

const QUERY = /^[ \t>]*(?:[-*+][ \t]+)?(?:`{3,}|~{3,})[ \t]*(?:dataview(?:js)?|tasks|query|base)[ \t]*\n/; // Obsidian shows what it finds
const HIGHLIGHT = /^[ \t]*\{[{%][<%]?-? ?\/? ?(?:end)?highlight\b[^{}\n]*\}{1,2}[ \t]*$/gm; // around code, of Jekyll and Hugo

// With more lines below it if it is wrapped.
const DATA =
  /(?<!\w)data:(?:image|audio|video|font|application|text)\/[\w.+-]{1,99}(?:;[\w=.+-]{1,80}){0,5},[^\s()[\]<>"']*(?:[ \t]*\n[ \t>]*[A-Za-z0-9+/]{40,}=*(?![^\s)\]>"']))*/g;
const RUN = /(?<![\w+/.:@?=&%#-])[A-Za-z0-9+/]{200,}={0,2}/g; // data without an address

/** The visible text of a note; title, aliases and tags of its front matter name the whole. @param {string} note */
export function readMarkdown(note) {
  const [front, content] = frontMatter(note);
  const code = new Map(); // what stays as it is, and the number in the mark in its place; equal code has the same
  const shown = withoutData(note.slice(front.length).replace(JOPLIN, "").replace(HIGHLIGHT, "~~~~"))
    .replace(/<r(?:t|p|tc)\b[^<>]*>[^<>]*(?:<\/r(?:t|p|tc)\s*>|(?=<\/?r(?:uby|b|t|p)\b))/g, "")
    .replace(HIDDEN, (found, ...rest) => {
      const { fenced, span, escaped, word, braced, listed, caption } = rest.at(-1);
      const kept = (QUERY.test(fenced) ? "" : fenced) ?? span ?? (/[\\#`~]/.test(escaped) ? found : escaped);
      if (kept && !code.has(kept)) code.set(kept, code.size);
      return kept ? `\0${code.get(kept)}\0` : (word ?? braced ?? listed ?? caption ?? emptyLines(found));
    });
  const inPlace = [...code.keys()]; // a mark in the address of a link is not shown
  const text = withoutMarks(shown).replace(/\0(\d+)\0/g, (_, number) => inPlace[number]);
  return { text, names: content ? namesIn(content) : [] };
}

const LABEL = String.raw`\[((?:[^\[\]]|\[[^\[\]]*\])*)\]`;
const TARGET = String.raw`\([ \t]*(?:<[^<>\n]*>|(?:[^()\s]|\([^()\s]*\))*)(?:\s+(?:"[^"\n]*"|'[^'\n]*'|=[\dx]+))?[ \t]*\)`;
const [PICTURE, LINK] = [new RegExp(`!${LABEL}${TARGET}`, "g"), new RegExp(LABEL + TARGET, "g")];
const PAGE = /!?\[\[(?![\s[])([^[\]|\n]*?)(?:\\?\|([^[\]\n]*))?\]\]/g; // a link of Obsidian and of wikis
const UNNAMED = // a picture whose name is the work of a program: IMG_2041.heic, image, Pasted image 2024.png
  /^(?:(?:img|image|dsc[\p{L}\p{N}_]?|pxl|screen ?shot|bildschirmfoto|capture d.écran|pasted image|untitled)(?:[^\p{L}]|at|um|à|[ap]m)*(?:\.[\p{L}\p{N}_]{3,4})?|[^\p{L}]+\.(?:png|jpe?g|gif|heic|webp))$/iu;
const named = (picture) => (UNNAMED.test(picture) ? "" : picture);
const EMPHASIS = [
  /(?<![0-9A-Za-z*])\*\*\*?(?![\s*])((?:[^*\n]|\*(?!\*)|\n(?![ \t]*\n)){1,500}?)(?<![\s*])\*\*\*?(?!\*)/g,
  /(?<![\p{L}\p{N}_/\\.-])__(?![\s_])((?:[^_\n]|_(?!_)|\n(?![ \t]*\n)){1,500}?)(?<![\s_])__(?![\p{L}\p{N}_])/gu,
  /(?<!~)~~(?![\s~])((?:[^~\n]|~(?!~)|\n(?![ \t]*\n)){1,500}?)(?<![\s~])~~(?!~)/g,
  /(?<![0-9A-Za-z_=!<>])==(?![\s=])([^=\n]{1,500})(?<!\s)==(?![0-9A-Za-z_=])/g,
  /(?<![\p{L}\p{N}_*/\\.-])\*(?=[\p{L}\p{N}_])([^*\n]{1,200})(?<=[\p{L}\p{N}_.!?:,;)])\*(?![\p{L}\p{N}_*/\\-]|\.[\p{L}\p{N}_])/gu,
  /(?<![\p{L}\p{N}_/\\.-])_(?=[\p{L}\p{N}])([^_\n]{1,200})(?<=[\p{L}\p{N}.!?:,;)])_(?![\p{L}\p{N}_/\\-]|\.[\p{L}\p{N}_])/gu,
];
const TAG = /<\/?([a-z][a-z0-9]*)(?:\s+(?:open|hidden|[^<>=]*=[^<>]*)?)?\/?>/gi;
const INLINE = new Set(
  "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp small span strike strong sub sup tt u var wbr".split(" "),
);
const BLOCK =
  /^(?:address|article|aside|blockquote|br|center|d[dlt]|details|div|figcaption|figure|footer|h[1-6r]|header|img|li|main|nav|[ou]l|p|picture|section|summary|table|tbody|td|tfoot|th|thead|tr)$/;
const ADDRESS = /^ {0,3}\[(?!\^)([^[\]\n]+)\]:[ \t]+<?(?!data:)(?=\S*(?:[/#]|\.\w))\S+>?(?:[ \t]+["'(][^\n]*)?[ \t]*$/gm;
const NOTE = /(?<=\S)\^\[([^[\]]{1,500})\]/g; // a footnote where its number would be
const REFERENCE = /!?\[([^[\]]*)\](?:\[([^[\]\n]*)\])?(?!\()/g;
const ENTITY = /&(?:#(\d{1,6})|#x([0-9a-f]{1,5})|(lt|gt|amp|quot|apos|nbsp));/gi; // those that programs write
const NAMED = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'", nbsp: "\u00a0" };

/** A text without tags and marks, and with characters for entities; links show their label. @param {string} text */
function withoutMarks(text) {
  const small = (name) => name.trim().toLowerCase().replace(/\s+/g, " ");
  const names = new Set(Array.from(text.matchAll(ADDRESS), ([, name]) => small(name)));
  const shown = text
    .replace(/<((?:https?|mailto):[^<>\s]+|[\w.+-]+@[\w.-]+)>/g, "$1")
    .replace(TAG, (tag, name) => {
      const kind = name.toLowerCase();
      if (!INLINE.has(kind) && !BLOCK.test(kind)) return tag;
      const words = kind === "img" && /\balt\s*=\s*(["'])([^]*?)\1/i.exec(tag);
      return (words ? words[2] : INLINE.has(kind) ? "" : " ") + "\n".repeat(tag.split("\n").length - 1);
    })
    .replace(ADDRESS, "")
    .replace(REFERENCE, (found, label, name) => (names.has(small(name || label)) ? label : found))
    .replace(PICTURE, (_, words) => named(words))
    .replace(LINK, "$1")
    .replace(PAGE, (found, page, label) => {
      if (label && !/^[\dx]*$/.test(label)) return label;
      const name = page.replace(/#?\^.*/, "").replace(/^#/, "").replaceAll("#", " > ");
      return found[0] === "!" ? named(name) : name;
    })
    .replace(NOTE, " ($1)");
  return EMPHASIS.reduce((rest, emphasis) => rest.replace(emphasis, "$1"), shown).replace(ENTITY, (_, number, hex, name) =>
    name ? NAMED[name.toLowerCase()] : String.fromCodePoint(hex ? parseInt(hex, 16) : number),
  );
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
