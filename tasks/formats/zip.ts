import { crc32 } from 'node:zlib'
import { type Entry, fromBufferPromise, validateFileName, type ZipFile } from 'yauzl'
import { decodeNames } from './zip-names.ts'

/** Reads untrusted zip archives. No other file imports `yauzl`. */

/** A file in an archive. Its content is read on demand. */
export interface ZipEntry {
  readonly path: string
  /** Unpacked size in bytes. */
  readonly size: number
  /**
   * Reads the file; null if it is larger than `max`.
   * @throws `rules.createError` if the bytes do not match the archive's headers.
   */
  read(max: number): Promise<Buffer | null>
}

/** Rules that an archive must satisfy. */
export interface ZipRules {
  /** Creates the error for a rejected archive. The error message ends with the reason. */
  createError(reason: string, cause?: unknown): Error
  /**
   * True if the archive may hold only text. Nested archives and files with a compression ratio above `MAX_RATIO` are
   * rejected.
   */
  readonly isTextOnly: boolean
}

// Covers the largest blog export, which has a file per post. Checking the headers of that many files takes a second.
const MAX_ENTRIES = 100_000
const MAX_BYTES = 512 * 1024 * 1024
// Text compresses to about a tenth of its size. Among large files, only zip bombs exceed this ratio.
const MAX_RATIO = 100
const MIN_RATIO_CHECK_BYTES = 5 * 1024 * 1024
const SYMLINK_TYPE = 0o120000
const FILE_TYPE_MASK = 0o170000

/**
 * Opens an archive and checks all its headers without unpacking any file.
 * @throws `rules.createError` with the reason.
 */
export async function openZip(bytes: Buffer, rules: ZipRules): Promise<readonly ZipEntry[]> {
  const { createError: refused } = rules
  const zip = await fromBufferPromise(bytes, { lazyEntries: true, validateEntrySizes: true }).catch(
    (error) => {
      throw refused('it is not a zip archive', error)
    },
  )
  if (zip.entryCount > MAX_ENTRIES) throw refused(`the archive has more than ${MAX_ENTRIES} entries`)
  const entries: Entry[] = []
  try {
    for await (const entry of zip.eachEntry()) entries.push(entry)
  } catch (error) {
    const isPathError = /path|characters/.test(String(error))
    throw refused(isPathError ? 'a path in the archive leads out of it' : 'the archive is damaged', error)
  }
  const names = decodeNames(entries)
  if (names.some((name) => validateFileName(name) !== null))
    throw refused('a path in the archive leads out of it')
  for (const entry of entries) await assertHarmless(zip, entry, rules)
  assertSizeLimits(entries, bytes.length, rules)
  return entries
    .map((entry, i) => ({
      path: names[i]!,
      size: entry.uncompressedSize,
      read: (max: number) => read(zip, entry, max, rules),
    }))
    .filter(({ path }) => !path.endsWith('/'))
}

async function assertHarmless(
  zip: ZipFile,
  entry: Entry,
  { createError: refused, isTextOnly: isText }: ZipRules,
): Promise<void> {
  if (entry.isEncrypted()) throw refused('the archive is encrypted')
  if (!entry.canDecodeFileData()) throw refused('the archive uses an unsupported compression method')
  if (isText && /\.zip$/i.test(entry.fileName)) throw refused('the archive contains another archive')
  if (((entry.externalFileAttributes >>> 16) & FILE_TYPE_MASK) === SYMLINK_TYPE)
    throw refused('the archive contains a link')
  if (
    isText &&
    entry.uncompressedSize > MIN_RATIO_CHECK_BYTES &&
    entry.uncompressedSize > MAX_RATIO * entry.compressedSize
  )
    throw refused(`a file in the archive unpacks to more than ${MAX_RATIO} times its packed size`)
  const local = await zip.readLocalFileHeaderPromise(entry).catch((error) => {
    throw refused('the archive is damaged', error)
  })
  // Bit 3 is set if the sizes follow the data.
  const hasSizes = (local.generalPurposeBitFlag & 8) === 0 && local.compressedSize !== 0xffffffff
  if (
    !local.fileName.equals(entry.fileNameRaw) ||
    (hasSizes &&
      (local.compressedSize !== entry.compressedSize || local.uncompressedSize !== entry.uncompressedSize))
  )
    throw refused('the headers of the archive contradict each other')
}

function assertSizeLimits(entries: readonly Entry[], size: number, { createError: refused }: ZipRules): void {
  const sum = (sizeOf: (entry: Entry) => number): number =>
    entries.reduce((total, entry) => total + sizeOf(entry), 0)
  if (sum(({ uncompressedSize }) => uncompressedSize) > MAX_BYTES)
    throw refused(`the files in the archive unpack to more than ${MAX_BYTES} bytes`)
  // A larger sum means that files share bytes.
  if (sum(({ compressedSize }) => compressedSize) > size)
    throw refused('the headers of the archive contradict each other')
}

async function read(
  zip: ZipFile,
  entry: Entry,
  max: number,
  { createError: refused }: ZipRules,
): Promise<Buffer | null> {
  if (entry.uncompressedSize > max) return null
  try {
    const chunks: Buffer[] = []
    // This loop fails as soon as the data is longer or shorter than the header says.
    for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer)
    const bytes = Buffer.concat(chunks)
    if (crc32(bytes) !== entry.crc32) throw new Error('Checksum mismatch')
    return bytes
  } catch (error) {
    throw refused('the archive is damaged', error)
  }
}
