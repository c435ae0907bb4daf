import { crc32 } from 'node:zlib'
import { type Entry, fromBufferPromise, type ZipFile } from 'yauzl'
import { fail } from '../../sql/errors.ts'

/** Zip archives of strangers. The only importer of `yauzl`. */

/** A file of an archive, read when it is asked for. */
export interface ZipEntry {
  readonly path: string
  /** Null: larger than `most`. @throws fail('import.refused') when its bytes are not what the archive says. */
  read(most: number): Promise<Buffer | null>
}

const MOST_ENTRIES = 10_000
const MOST_BYTES = 512 * 1024 * 1024
// Text is written in a tenth of its size; only what is made to burst comes to more than this, and only in large.
const MOST_RATIO = 100
const LARGE = 5 * 1024 * 1024
const SYMLINK = 0o120000
const KIND = 0o170000

const refused = (reason: string, cause?: unknown): Error => fail('import.refused', { reason }, { cause })

/**
 * The files of an archive, after a look at all that it says of them: nothing is unpacked before.
 * @throws fail('import.refused') with what is wrong with it.
 */
export async function openZip(bytes: Buffer): Promise<readonly ZipEntry[]> {
  const zip = await fromBufferPromise(bytes, { lazyEntries: true, validateEntrySizes: true }).catch(
    (error) => {
      throw refused('it is not a zip archive', error)
    },
  )
  if (zip.entryCount > MOST_ENTRIES) throw refused(`the archive has more than ${MOST_ENTRIES} entries`)
  const entries: Entry[] = []
  try {
    for await (const entry of zip.eachEntry()) entries.push(entry)
  } catch (error) {
    const path = /path|characters/.test(String(error))
    throw refused(path ? 'a path in the archive leads out of it' : 'the archive is damaged', error)
  }
  for (const entry of entries) await assertHarmless(zip, entry)
  assertBounded(entries, bytes.length)
  return entries
    .filter(({ fileName }) => !fileName.endsWith('/'))
    .map((entry) => ({ path: entry.fileName, read: (most) => read(zip, entry, most) }))
}

async function assertHarmless(zip: ZipFile, entry: Entry): Promise<void> {
  if (entry.isEncrypted()) throw refused('the archive is encrypted')
  if (!entry.canDecodeFileData()) throw refused('the archive is packed in a way that is not known here')
  if (/\.zip$/i.test(entry.fileName)) throw refused('an archive lies in the archive')
  if (((entry.externalFileAttributes >>> 16) & KIND) === SYMLINK) throw refused('a link lies in the archive')
  if (entry.uncompressedSize > LARGE && entry.uncompressedSize > MOST_RATIO * entry.compressedSize)
    throw refused(`a file in the archive is more than ${MOST_RATIO} times as large as it is packed`)
  const local = await zip.readLocalFileHeaderPromise(entry).catch((error) => {
    throw refused('the archive is damaged', error)
  })
  // Bit 3: the sizes stand behind the data.
  const sized = (local.generalPurposeBitFlag & 8) === 0 && local.compressedSize !== 0xffffffff
  if (
    !local.fileName.equals(entry.fileNameRaw) ||
    (sized &&
      (local.compressedSize !== entry.compressedSize || local.uncompressedSize !== entry.uncompressedSize))
  )
    throw refused('the headers of the archive contradict each other')
}

function assertBounded(entries: readonly Entry[], size: number): void {
  const sum = (of: (entry: Entry) => number): number => entries.reduce((total, entry) => total + of(entry), 0)
  if (sum(({ uncompressedSize }) => uncompressedSize) > MOST_BYTES)
    throw refused(`the files in the archive are larger than ${MOST_BYTES} bytes together`)
  // More than there is: files share their bytes.
  if (sum(({ compressedSize }) => compressedSize) > size)
    throw refused('the headers of the archive contradict each other')
}

async function read(zip: ZipFile, entry: Entry, most: number): Promise<Buffer | null> {
  if (entry.uncompressedSize > most) return null
  try {
    const chunks: Buffer[] = []
    // Ends with an error as soon as there is more or less than the headers say.
    for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer)
    const bytes = Buffer.concat(chunks)
    if (crc32(bytes) !== entry.crc32) throw new Error('The checksum is wrong')
    return bytes
  } catch (error) {
    throw refused('the archive is damaged', error)
  }
}
