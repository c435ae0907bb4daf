import { type CellObject, CFB, read, SSF, set_cptable, type WorkBook, type WorkSheet } from '@e965/xlsx'
import * as codePages from '@e965/xlsx/dist/cpexcel.full.mjs'

/**
 * SheetJS, from the package that republishes its current releases: number formats, binary workbooks and compound files.
 * The only importer of `@e965/xlsx`.
 */

export type { CellObject, WorkSheet }

// Workbooks before Excel 97 are not in Unicode.
set_cptable(codePages)

/** Number formats that files name by number only (ECMA-376, part 1, 18.8.30). */
export const BUILT_IN_FORMATS: Readonly<Record<number, string>> = SSF.get_table()

/** Formats a value as Excel shows it. Throws for invalid codes. */
export const formatByCode = (code: string, value: number | string): string => SSF.format(code, value)

/** Reads a workbook in a binary format, or in the XML of Excel 2003. Throws for damaged ones. */
export const readWorkbook = (bytes: Uint8Array): WorkBook =>
  read(bytes, { type: 'array', dense: true, cellNF: true, cellText: false, cellHTML: false })

/** A stream of a compound file. */
export interface CompoundEntry {
  readonly path: string
  readonly content: Uint8Array
}

// The library has no types for this part.
interface CompoundFile {
  readonly FileIndex: readonly { readonly type: number; readonly content?: ArrayLike<number> }[]
  readonly FullPaths: readonly string[]
}

// Type of a stream, as opposed to a storage (MS-CFB, 2.6.1).
const STREAM = 2

/** Lists the streams of a compound file (MS-CFB). Throws for damaged files. */
export function readCompoundStreams(bytes: Uint8Array): readonly CompoundEntry[] {
  const { FileIndex, FullPaths }: CompoundFile = CFB.read(bytes, { type: 'array' })
  return FileIndex.flatMap(({ type, content }, n) =>
    type === STREAM
      ? [{ path: FullPaths[n]!.replace(/^[^/]*\//, ''), content: Uint8Array.from(content ?? []) }]
      : [],
  )
}
