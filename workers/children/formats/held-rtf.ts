import { countLetterBytes, NameFilter } from './held-text.ts'

/** Counts the letters that an RTF file holds, in groups that a reader knows or not. */

// Groups without text of the document (RTF 1.9.1). Unknown groups may hold text, so they count.
const SKIPPED_GROUPS = new Set(
  `fonttbl filetbl colortbl stylesheet info pict objdata themedata datastore colorschememapping latentstyles listtable
  listoverridetable listpicture revtbl rsidtbl generator xmlnstbl fldinst datafield nonshppict shprslt xe tc tcn rxe bkmkstart
  bkmkend template private keycode ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn sn sv pgptbl mmathPr userprops docvar
  passwordhash protusertbl wgrffmtfilter oldcprops oldpprops oldsprops oldtprops pnseclvl pntxta pntxtb falt panose fontemb
  fontfile fname blipuid bliptag picprop objclass objname objalias objsect objtime linkval operator company manager
  category doccomm hlinkbase buptim creatim revtim printim atnid atnauthor atndate atntime atnicn atnref atnparent atrfstart
  atrfend hl hlfr hlloc hlsrc hsv factoidname writereservation writereservhash listname liststylename leveltext levelnumbers
  formfield ffname mhtmltag htmltag gridtbl defchp defpap nesttableprops nonesttables ebcstart ebcend`.split(
    /\s+/,
  ),
)

const KNOWN_WORDS = new NameFilter([...SKIPPED_GROUPS, 'v', 'deleted', 'plain', 'u', 'bin'])

// Limit of nested groups, as in the reader.
const MAX_NESTING = 10_000
const [BACKSLASH, OPEN, CLOSE, QUOTE, HYPHEN, SPACE] = [0x5c, 0x7b, 0x7d, 0x27, 0x2d, 0x20] as const

const isLetter = (byte: number | undefined): boolean =>
  byte !== undefined && ((byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a))
const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39

interface Group {
  readonly isSkipped: boolean
  readonly isHidden: boolean
}

/** Counts the letters of a file. It may stop once there cannot be more than `enough`. */
export function countRtf(bytes: Buffer, enough = 0): number {
  const groups: Group[] = []
  let group: Group = { isSkipped: false, isHidden: false }
  let count = 0
  const onWord = (word: string | null, number: number | null): void => {
    if (word === null) return
    if (SKIPPED_GROUPS.has(word)) group = { ...group, isSkipped: true }
    else if (word === 'v' || word === 'deleted') group = { ...group, isHidden: number !== 0 }
    else if (word === 'plain') group = { ...group, isHidden: false }
    else if (word === 'u' && number !== null) count += Number(counts(group))
  }
  for (let at = 0; at < bytes.length && count + bytes.length - at > enough; ) {
    const byte = bytes[at]!
    if (byte === OPEN) {
      if (groups.length < MAX_NESTING) groups.push(group)
      at++
    } else if (byte === CLOSE) {
      group = groups.pop() ?? group
      at++
    } else if (byte !== BACKSLASH) {
      const end = findTextEnd(bytes, at)
      if (counts(group)) count += countLetterBytes(bytes, at, end)
      at = end
    } else if (isLetter(bytes[at + 1])) {
      const { word, number, end } = readWord(bytes, at + 1)
      onWord(word, number)
      at = end + (word === 'bin' ? Math.max(0, number ?? 0) : 0)
    } else if (bytes[at + 1] === QUOTE) {
      const code = Number.parseInt(bytes.toString('latin1', at + 2, at + 4), 16)
      if (counts(group) && code >= 0xc0) count++
      at += 4
    } else at += 2
  }
  return count
}

const counts = ({ isSkipped, isHidden }: Group): boolean => !isSkipped && !isHidden

function findTextEnd(bytes: Buffer, from: number): number {
  let at = from
  while (at < bytes.length && bytes[at] !== BACKSLASH && bytes[at] !== OPEN && bytes[at] !== CLOSE) at++
  return at
}

/** Reads a control word with its number and the space behind it. */
function readWord(bytes: Buffer, from: number): { word: string | null; number: number | null; end: number } {
  let at = from
  while (isLetter(bytes[at])) at++
  const word = KNOWN_WORDS.find(bytes, from, at)
  const start = at
  if (bytes[at] === HYPHEN && isDigit(bytes[at + 1])) at++
  while (isDigit(bytes[at])) at++
  const number =
    at > start && word !== null ? Number(bytes.toString('latin1', start, Math.min(at, start + 11))) : null
  return { word, number, end: bytes[at] === SPACE ? at + 1 : at }
}
