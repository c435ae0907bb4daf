/** Reads the properties of characters, paragraphs and sections in files of Word 97 to 2003 (MS-DOC). */

/** The bytes of a text with properties, by their place in the main stream. */
export interface Run {
  readonly from: number
  readonly to: number
}

// Places of the tables in the file information block (MS-DOC, 2.5.6): offset and size of each.
const SECTIONS_AT = 0xca
const CHARACTERS_AT = 0xfa
const PARAGRAPHS_AT = 0x102
const PAGE_BYTES = 512

// Properties (MS-DOC, 2.6).
const DELETED = 0x0800
const HIDDEN = 0x083c
const ROW_END = 0x2417
const PAGE_BREAK_BEFORE = 0x2407
const SECTION_BREAK = 0x3009
// Kinds of section breaks that begin no page.
const CONTINUOUS = 0
const NEW_COLUMN = 1

// Sizes of operands by the highest three bits of a property. 6 has its size in the first byte.
const OPERAND_BYTES = [1, 1, 2, 4, 2, 2, 0, 3]

/** Returns the value of each property that is one byte. */
function* listProperties(bytes: Buffer): Generator<readonly [property: number, value: number]> {
  for (let at = 0; at + 3 <= bytes.length; ) {
    const property = bytes.readUInt16LE(at)
    at += 2
    yield [property, bytes[at]!]
    const kind = property >>> 13
    at += kind === 6 ? 1 + bytes[at]! : OPERAND_BYTES[kind]!
  }
}

/** Lists the pages of properties that a table names. Each page counts once. */
function listPages(main: Buffer, table: Buffer, at: number): readonly Buffer[] {
  const from = main.readUInt32LE(at)
  const entries = table.subarray(from, from + main.readUInt32LE(at + 4))
  const count = Math.max(0, Math.floor((entries.length - 4) / 8))
  const numbers = new Set<number>()
  for (let n = 0; n < count; n++) numbers.add(entries.readUInt32LE((count + 1) * 4 + n * 4) & 0x3fffff)
  return [...numbers]
    .map((number) => main.subarray(number * PAGE_BYTES, (number + 1) * PAGE_BYTES))
    .filter((page) => page.length === PAGE_BYTES)
}

function* listRuns(
  pages: readonly Buffer[],
  entryBytes: number,
  read: (page: Buffer, at: number) => Buffer,
): Generator<Run & { readonly properties: Buffer }> {
  for (const page of pages) {
    const count = page[PAGE_BYTES - 1]!
    if ((count + 1) * 4 + count * entryBytes > PAGE_BYTES) continue
    for (let n = 0; n < count; n++) {
      const at = page[(count + 1) * 4 + n * entryBytes]! * 2
      const [from, to] = [page.readUInt32LE(n * 4), page.readUInt32LE(n * 4 + 4)]
      if (at > 0 && to > from) yield { from, to, properties: read(page, at) }
    }
  }
}

const sortRuns = (runs: readonly Run[]): readonly Run[] => [...runs].sort((a, b) => a.from - b.from)

/** Lists the runs of hidden or deleted characters, in order. */
export function listHiddenRuns(main: Buffer, table: Buffer): readonly Run[] {
  const hidden: Run[] = []
  const read = (page: Buffer, at: number): Buffer => page.subarray(at + 1, at + 1 + page[at]!)
  for (const { from, to, properties } of listRuns(listPages(main, table, CHARACTERS_AT), 1, read)) {
    let isHidden = false
    for (const [property, value] of listProperties(properties))
      if (property === DELETED || property === HIDDEN) isHidden = value === 1
    if (isHidden) hidden.push({ from, to })
  }
  return sortRuns(hidden)
}

/** Lists the paragraphs that end a row of a table, and those that begin a page, in order. */
export function listParagraphs(
  main: Buffer,
  table: Buffer,
): { readonly rowEnds: readonly Run[]; readonly pageStarts: readonly Run[] } {
  const rowEnds: Run[] = []
  const pageStarts: Run[] = []
  const read = (page: Buffer, at: number): Buffer => {
    // The size is in words, and follows a zero if it is even. The properties follow the number of the style.
    const isEven = page[at] === 0
    const from = isEven ? at + 2 : at + 1
    const size = isEven ? 2 * page[at + 1]! : 2 * page[at]! - 1
    return page.subarray(from + 2, from + size)
  }
  for (const { from, to, properties } of listRuns(listPages(main, table, PARAGRAPHS_AT), 13, read))
    for (const [property, value] of listProperties(properties)) {
      if (property === ROW_END && value === 1) rowEnds.push({ from, to })
      else if (property === PAGE_BREAK_BEFORE && value === 1) pageStarts.push({ from, to })
    }
  return { rowEnds: sortRuns(rowEnds), pageStarts: sortRuns(pageStarts) }
}

/** Lists the first characters of the sections that begin on the page of the section before. */
export function listContinuedSections(main: Buffer, table: Buffer): ReadonlySet<number> {
  const from = main.readUInt32LE(SECTIONS_AT)
  const entries = table.subarray(from, from + main.readUInt32LE(SECTIONS_AT + 4))
  const count = Math.max(0, Math.floor((entries.length - 4) / 16))
  const continued = new Set<number>()
  for (let n = 1; n < count; n++) {
    const at = entries.readUInt32LE((count + 1) * 4 + n * 12 + 2)
    if (at + 2 > main.length) continue
    for (const [property, value] of listProperties(main.subarray(at + 2, at + 2 + main.readUInt16LE(at))))
      if (property === SECTION_BREAK && (value === CONTINUOUS || value === NEW_COLUMN))
        continued.add(entries.readUInt32LE(n * 4))
  }
  return continued
}
