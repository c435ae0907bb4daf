/** Control words and encodings of Rich Text Format 1.9.1. */

// Encodings of fonts by character set.
const CHARACTER_SETS: Readonly<Record<number, number>> = {
  77: 10000,
  78: 10001,
  79: 10003,
  80: 10008,
  81: 10002,
  83: 10005,
  84: 10004,
  85: 10006,
  86: 10081,
  87: 10021,
  88: 10029,
  89: 10007,
  128: 932,
  129: 949,
  130: 1361,
  134: 936,
  136: 950,
  161: 1253,
  162: 1254,
  163: 1258,
  177: 1255,
  178: 1256,
  186: 1257,
  204: 1251,
  222: 874,
  238: 1250,
  254: 437,
  255: 850,
}
/** Returns the code page of a font's character set; undefined for that of the document. */
export const findFontCodePage = (characterSet: number): number | undefined => CHARACTER_SETS[characterSet]

/** Groups without document text. */
export const SKIPPED_GROUPS = new Set(
  `fonttbl filetbl colortbl stylesheet info pict objdata themedata datastore listtable listoverridetable revtbl rsidtbl generator
  xmlnstbl fldinst latentstyles nonshppict shprslt nonesttables xe tc tcn rxe sn sv template private keycode
  ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn bkmkstart bkmkend`.split(/\s+/),
)

/** Groups with document text among those that readers may ignore, because they begin with an asterisk. */
export const KNOWN_IGNORABLE_GROUPS = new Set(
  'shpinst do annotation ud nesttableprops shppict footnote header footer shptxt'.split(' '),
)

/** Groups whose text stands apart from that of their paragraph. It follows the page. */
export const ASIDE_GROUPS = new Set('footnote annotation shptxt dptxbxtext'.split(' '))

// A Map, because a plain object inherits `constructor` and `toString`, which a file may use as control words.
export const CONTROL_WORD_TEXTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    par: '\n',
    line: '\n',
    lbr: '\n',
    row: '\n',
    sect: '\n',
    column: '\n',
    tab: '\t',
    cell: '\t',
    nestcell: '\t',
    nestrow: '\n',
    emdash: '—',
    endash: '–',
    emspace: ' ',
    enspace: ' ',
    qmspace: ' ',
    lquote: '‘',
    rquote: '’',
    ldblquote: '“',
    rdblquote: '”',
    bullet: '•',
    zwj: '\u200d',
    zwnj: '\u200c',
  }),
)
export const CONTROL_SYMBOL_TEXTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '~': ' ',
    _: '-',
    '{': '{',
    '}': '}',
    '\\': '\\',
    '\n': '\n',
    '\r': '\n',
  }),
)
