import { decodeAs, decodeText } from './decode.ts'
import { isUtf8 } from './encodings.ts'

/** Decodes the names of files in zip archives, whose encoding many programs do not declare. */

/** The name of an entry, as the archive's directory has it. */
export interface RawName {
  readonly fileName: string
  readonly fileNameRaw: Buffer
  readonly generalPurposeBitFlag: number
  readonly extraFields: readonly { readonly id: number }[]
}

const UTF8_FLAG = 0x800
const UNICODE_PATH_FIELD = 0x7075
// Encodings of file names in Windows. Detection of others is chance: they are CP437 then, as the format says.
const NAME_ENCODINGS: ReadonlySet<string> = new Set([
  'shift_jis',
  'euc-jp',
  'gb18030',
  'big5',
  'euc-kr',
  'ibm866',
  'windows-1251',
])

/**
 * Returns the names of all entries, in order. A name without a declared encoding is UTF-8 if it can be. Otherwise the
 * letters of all such names decide, because one name is too short.
 */
export function decodeNames(entries: readonly RawName[]): string[] {
  const unclear = entries.filter((entry) => !isDeclared(entry) && !isUtf8(entry.fileNameRaw))
  const encoding = unclear.length === 0 ? null : detectEncoding(unclear)
  return entries.map((entry) => {
    if (isDeclared(entry)) return entry.fileName
    if (isUtf8(entry.fileNameRaw)) return decodePath(entry.fileNameRaw, 'utf-8')
    return encoding === null ? entry.fileName : decodePath(entry.fileNameRaw, encoding)
  })
}

const isDeclared = ({ generalPurposeBitFlag: flags, extraFields }: RawName): boolean =>
  (flags & UTF8_FLAG) !== 0 || extraFields.some(({ id }) => id === UNICODE_PATH_FIELD)

const decodePath = (bytes: Buffer, encoding: string): string =>
  decodeAs(bytes, encoding).text.replaceAll('\\', '/')

function detectEncoding(entries: readonly RawName[]): string | null {
  const names = Buffer.concat(entries.flatMap(({ fileNameRaw }) => [fileNameRaw, Buffer.from('\n')]))
  const encoding = decodeText(names)?.encoding ?? null
  return encoding !== null && NAME_ENCODINGS.has(encoding) ? encoding : null
}
