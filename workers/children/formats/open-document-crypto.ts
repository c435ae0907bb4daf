import { createDecipheriv, createHash, pbkdf2Sync } from 'node:crypto'
import { inflateRawSync } from 'node:zlib'
import { Locked, Unreadable } from '../images/images.ts'
import { Archive, MAX_PART_BYTES } from './archive.ts'
import { type Attributes, parseXml } from './xml.ts'

/** Decrypts OpenDocument files (ISO/IEC 26300-2, 3.4): AES-256 with a key by PBKDF2. */

// Programs use 100,000 iterations for each part.
const MAX_ITERATIONS = 10_000_000

/** The encryption of a part, by the elements of its entry in the manifest. */
interface EncryptedPart {
  readonly path: string
  readonly elements: Record<string, Attributes>
}

/** Returns an archive of the parts with text. @throws Locked if the password is missing or wrong, and Unreadable. */
export async function decryptOpenDocument(
  archive: Archive,
  manifest: string,
  password: string | null,
): Promise<Archive> {
  const encrypted = listEncryptedParts(manifest).filter(({ path }) =>
    /(^|\/)(content|styles)\.xml$/.test(path),
  )
  if (password === null) throw new Locked(false)
  const parts = new Map<string, Buffer>()
  let iterations = 0
  for (const part of encrypted) {
    const bytes = await archive.bytes(part.path)
    if (bytes === null) continue
    iterations += Number(part.elements['key-derivation']?.['manifest:iteration-count'])
    if (!(iterations <= MAX_ITERATIONS)) throw new Unreadable(UNSUPPORTED)
    parts.set(part.path, decryptPart(part, bytes, password))
  }
  return Archive.of(parts)
}

const UNSUPPORTED = 'The document is encrypted in a way that cannot be read, even with its password'

function listEncryptedParts(manifest: string): readonly EncryptedPart[] {
  const parts: EncryptedPart[] = []
  let path = ''
  parseXml(manifest, {
    open(name, attributes) {
      if (name === 'file-entry') path = attributes['manifest:full-path'] ?? ''
      else if (name === 'encryption-data') parts.push({ path, elements: { [name]: attributes } })
      else {
        const part = parts.at(-1)
        if (part?.path === path) part.elements[name] = attributes
      }
    },
  })
  return parts
}

function decryptPart({ elements }: EncryptedPart, bytes: Buffer, password: string): Buffer {
  const algorithm = elements.algorithm ?? {}
  const derivation = elements['key-derivation'] ?? {}
  const isKnown =
    /aes256-cbc$/i.test(algorithm['manifest:algorithm-name'] ?? '') &&
    /pbkdf2$/i.test(derivation['manifest:key-derivation-name'] ?? '')
  if (!isKnown) throw new Unreadable(UNSUPPORTED)
  const start = elements['start-key-generation']?.['manifest:start-key-generation-name'] ?? 'SHA1'
  const base64 = (value: string | undefined): Buffer => Buffer.from(value ?? '', 'base64')
  const key = pbkdf2Sync(
    createHash(/sha256$/i.test(start) ? 'sha256' : 'sha1')
      .update(password, 'utf8')
      .digest(),
    base64(derivation['manifest:salt']),
    Number(derivation['manifest:iteration-count']),
    32,
    'sha1',
  )
  const checksum = elements['encryption-data'] ?? {}
  try {
    const iv = base64(algorithm['manifest:initialisation-vector'])
    const cipher = createDecipheriv('aes-256-cbc', key, iv).setAutoPadding(false)
    const packed = Buffer.concat([cipher.update(bytes), cipher.final()])
    const name = /sha256/i.test(checksum['manifest:checksum-type'] ?? '') ? 'sha256' : 'sha1'
    const actual = createHash(name).update(packed.subarray(0, 1024)).digest()
    if (!isPadded(packed, actual, base64(checksum['manifest:checksum']), name)) throw new Locked(true)
    return inflateRawSync(packed, { maxOutputLength: MAX_PART_BYTES })
  } catch (error) {
    if (error instanceof Unreadable) throw error
    throw new Unreadable('The encryption of the document is damaged', { cause: error })
  }
}

/** Compares the checksum of the first kilobyte, of which short parts count without their padding. */
function isPadded(packed: Buffer, actual: Buffer, expected: Buffer, name: string): boolean {
  if (actual.equals(expected)) return true
  if (packed.length > 1024 + 16) return false
  const whole = packed.subarray(0, packed.length - (packed.at(-1) ?? 0)).subarray(0, 1024)
  return createHash(name).update(whole).digest().equals(expected)
}
