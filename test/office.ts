import { createCipheriv, createHash, pbkdf2Sync, randomBytes } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import { CFB } from '@e965/xlsx'
import { type Lock, lockStream } from './office-locks.ts'
import { createZip } from './zip.ts'

/** Builds office files: packages of XML parts, encrypted packages, and the formats of Office 97. */

const RELATIONS = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'

/** A relation of the main part, or of the part that `from` names. */
export type TestRelation = readonly [id: string, type: string, target: string, from?: string]

const MAIN_TYPES = {
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml',
} as const

/** Builds an Office Open XML file. All parts lie in one folder. */
export function createOffice(
  kind: keyof typeof MAIN_TYPES,
  main: string,
  relations: readonly TestRelation[] = [],
  parts: Readonly<Record<string, string | Uint8Array>> = {},
): Buffer {
  const bySource = Map.groupBy(relations, ([, , , from = 'main.xml']) => from)
  return createZip([
    [
      '[Content_Types].xml',
      `<Types><Override PartName="/main.xml" ContentType="${MAIN_TYPES[kind]}"/></Types>`,
    ],
    [
      '_rels/.rels',
      `<Relationships><Relationship Id="a" Type="${RELATIONS}/officeDocument" Target="main.xml"/></Relationships>`,
    ],
    ['main.xml', main],
    ...[...bySource].map(
      ([from, all]) =>
        [
          `_rels/${from}.rels`,
          `<Relationships>${all.map(([id, type, target]) => `<Relationship Id="${id}" Type="${RELATIONS}/${type}" Target="${target}"/>`).join('')}</Relationships>`,
        ] as const,
    ),
    ...Object.entries(parts),
  ])
}

const W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
const R = `xmlns:r="${RELATIONS}"`

export const wordPart = (body: string): string =>
  `<w:document ${W} ${R}><w:body>${body}</w:body></w:document>`
export const wordParagraph = (text: string, properties = ''): string =>
  `<w:p><w:pPr>${properties}</w:pPr><w:r><w:t>${text}</w:t></w:r></w:p>`

/** Builds a workbook with one sheet. */
export function createSheet(
  rows: string,
  {
    formats = '',
    after = '',
    relations = [],
    parts = {},
  }: {
    readonly formats?: string
    readonly after?: string
    readonly relations?: readonly TestRelation[]
    readonly parts?: Readonly<Record<string, string | Uint8Array>>
  } = {},
): Buffer {
  return createOffice(
    'xlsx',
    `<workbook ${R}><sheets><sheet name="S" r:id="s"/></sheets></workbook>`,
    [['s', 'worksheet', 's.xml'], ['y', 'styles', 'y.xml'], ...relations],
    {
      's.xml': `<worksheet><sheetData>${rows}</sheetData>${after}</worksheet>`,
      'y.xml': `<styleSheet>${formats}</styleSheet>`,
      ...parts,
    },
  )
}

/** Builds a compound file. */
export function createCompound(streams: Readonly<Record<string, Uint8Array>>): Buffer {
  const file = CFB.utils.cfb_new()
  for (const [name, bytes] of Object.entries(streams)) CFB.utils.cfb_add(file, `/${name}`, Buffer.from(bytes))
  return Buffer.from(CFB.write(file, { type: 'buffer' }))
}

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
const hash = (name: string, ...parts: readonly Buffer[]): Buffer =>
  createHash(name).update(Buffer.concat(parts)).digest()

function hashPassword(name: string, salt: Buffer, password: string, spins: number): Buffer {
  let sum = hash(name, salt, Buffer.from(password, 'utf16le'))
  for (let n = 0; n < spins; n++) sum = hash(name, uint32(n), sum)
  return sum
}

const pad = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc(-bytes.length & 15)])

function encipher(name: string, key: Buffer, iv: Buffer | null, bytes: Buffer): Buffer {
  const cipher = createCipheriv(name, key, iv).setAutoPadding(false)
  return Buffer.concat([cipher.update(pad(bytes)), cipher.final()])
}

const withSize = (bytes: Buffer, encrypted: Buffer): Buffer =>
  Buffer.concat([uint32(bytes.length), uint32(0), encrypted])

/** Encrypts a package in the way of Office 2007 (MS-OFFCRYPTO, 2.3.4.5). */
export function encryptStandard(bytes: Buffer, password: string): Buffer {
  const salt = randomBytes(16)
  const sum = hash('sha1', hashPassword('sha1', salt, password, 50_000), uint32(0))
  const key = hash(
    'sha1',
    Buffer.from(Buffer.alloc(64, 0x36).map((byte, n) => byte ^ (sum[n] ?? 0))),
  ).subarray(0, 16)
  const encrypt = (data: Buffer): Buffer => encipher('aes-128-ecb', key, null, data)
  const word = randomBytes(16)
  const header = [0x24, 0, 0x660e, 0x8004, 128, 0x18, 0, 0].map(uint32)
  const verifier = [uint32(16), salt, encrypt(word), uint32(20), encrypt(hash('sha1', word))]
  const info = Buffer.concat([Buffer.from([4, 0, 2, 0]), uint32(0x24), uint32(32), ...header, ...verifier])
  return createCompound({ EncryptionInfo: info, EncryptedPackage: withSize(bytes, encrypt(bytes)) })
}

/** Encrypts a package in the way of Office since 2010 (MS-OFFCRYPTO, 2.3.4.10). */
export function encryptAgile(bytes: Buffer, password: string, claimedSpins = 1000): Buffer {
  const [salt, dataSalt, secret, input] = [16, 16, 32, 16].map((size) => randomBytes(size)) as [
    Buffer,
    Buffer,
    Buffer,
    Buffer,
  ]
  const sum = hashPassword('sha512', salt, password, 1000)
  const seal = (block: string, value: Buffer): string =>
    encipher(
      'aes-256-cbc',
      hash('sha512', sum, Buffer.from(block, 'hex')).subarray(0, 32),
      salt,
      value,
    ).toString('base64')
  const segments: Buffer[] = []
  for (let n = 0; n * 4096 < bytes.length; n++)
    segments.push(
      encipher(
        'aes-256-cbc',
        secret,
        hash('sha512', dataSalt, uint32(n)).subarray(0, 16),
        bytes.subarray(n * 4096, (n + 1) * 4096),
      ),
    )
  const common =
    'saltSize="16" blockSize="16" keyBits="256" hashSize="64" cipherAlgorithm="AES" cipherChaining="ChainingModeCBC" hashAlgorithm="SHA512"'
  const info = `<encryption xmlns="e" xmlns:p="p"><keyData ${common} saltValue="${dataSalt.toString('base64')}"/><keyEncryptors><keyEncryptor>
    <p:encryptedKey spinCount="${claimedSpins}" ${common} saltValue="${salt.toString('base64')}" encryptedVerifierHashInput="${seal('fea7d2763b4b9e79', input)}"
    encryptedVerifierHashValue="${seal('d7aa0f6d3061344e', hash('sha512', input))}" encryptedKeyValue="${seal('146e0be7abacd0d6', secret)}"/></keyEncryptor></keyEncryptors></encryption>`
  return createCompound({
    EncryptionInfo: Buffer.concat([Buffer.from([4, 0, 4, 0, 0x40, 0, 0, 0]), Buffer.from(info)]),
    EncryptedPackage: withSize(bytes, Buffer.concat(segments)),
  })
}

/** Encrypts an OpenDocument text as LibreOffice does (ISO/IEC 26300-2, 3.4). */
export function createEncryptedOdt(content: string, password: string): Buffer {
  const [salt, iv] = [randomBytes(16), randomBytes(16)]
  const key = pbkdf2Sync(hash('sha256', Buffer.from(password)), salt, 1000, 32, 'sha1')
  const packed = deflateRawSync(content)
  const checksum = hash('sha256', packed.subarray(0, 1024)).toString('base64')
  const fill = 16 - (packed.length % 16)
  const padded = Buffer.concat([packed, Buffer.alloc(fill - 1), Buffer.from([fill])])
  const m = 'xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"'
  return createZip([
    ['mimetype', 'application/vnd.oasis.opendocument.text'],
    ['content.xml', encipher('aes-256-cbc', key, iv, padded)],
    [
      'META-INF/manifest.xml',
      `<m:manifest ${m}><m:file-entry m:full-path="content.xml" m:size="${content.length}">
       <m:encryption-data m:checksum-type="urn:x#sha256-1k" m:checksum="${checksum}"><m:algorithm m:algorithm-name="http://www.w3.org/2001/04/xmlenc#aes256-cbc" m:initialisation-vector="${iv.toString('base64')}"/>
       <m:key-derivation m:key-derivation-name="PBKDF2" m:key-size="32" m:iteration-count="1000" m:salt="${salt.toString('base64')}"/>
       <m:start-key-generation m:start-key-generation-name="http://www.w3.org/2000/09/xmldsig#sha256" m:key-size="32"/></m:encryption-data></m:file-entry></m:manifest>`,
    ],
  ])
}

const FIB_BYTES = 0x400

/** Builds a document of Word 97 with one piece of text. `hidden` is a stretch of hidden characters. */
export function createDoc(
  parts: { readonly body: string; readonly notes?: string },
  { hidden, lock }: { readonly hidden?: readonly [number, number]; readonly lock?: Lock } = {},
): Buffer {
  const { body, notes = '' } = parts
  const text = Buffer.from(body + notes, 'utf16le')
  const main = Buffer.alloc(Math.ceil((FIB_BYTES + text.length) / 512) * 512 + 512)
  main.writeUInt16LE(0xa5ec, 0)
  main.writeUInt16LE(193, 2)
  main.writeUInt16LE(0x0200 | (lock ? 0x0100 : 0), 0x0a)
  main.writeUInt32LE(body.length, 0x4c)
  main.writeUInt32LE(notes.length, 0x50)
  text.copy(main, FIB_BYTES)
  const pieces = Buffer.concat([
    uint32(0),
    uint32(body.length + notes.length),
    Buffer.alloc(2),
    uint32(FIB_BYTES),
    Buffer.alloc(2),
  ])
  const clx = Buffer.concat([Buffer.from([2]), uint32(pieces.length), pieces])
  const info = lock?.info ?? Buffer.alloc(0)
  const table: Buffer[] = [info, clx]
  main.writeUInt32LE(info.length, 0x0e)
  main.writeUInt32LE(info.length, 0x1a2)
  main.writeUInt32LE(clx.length, 0x1a6)
  if (hidden !== undefined) {
    const at = main.length - 512
    const [from, to] = hidden.map((n) => FIB_BYTES + 2 * n) as [number, number]
    main.writeUInt32LE(from, at)
    main.writeUInt32LE(to, at + 4)
    main[at + 8] = 100
    Buffer.from([3, 0x3c, 0x08, 1]).copy(main, at + 200)
    main[at + 511] = 1
    main.writeUInt32LE(info.length + clx.length, 0xfa)
    main.writeUInt32LE(12, 0xfe)
    table.push(uint32(from), uint32(to), uint32(at / 512))
  }
  const streams = { WordDocument: main, '1Table': pad(Buffer.concat(table)) }
  return createCompound(
    lock === undefined
      ? streams
      : {
          WordDocument: lockStream(main, lock, 512, 0x44),
          '1Table': lockStream(streams['1Table'], lock, 512, info.length),
        },
  )
}

/**
 * Builds a document of Word 95 in a code page. `characterSet` is that of its font. With `isInPieces`, its two halves are
 * stored in reverse.
 */
export function createOldDoc(
  text: Buffer,
  { characterSet = 0, locale = 0x409, isInPieces = false, flags = 0 } = {},
): Buffer {
  const [start, half] = [FIB_BYTES, text.length >>> 1]
  const font = Buffer.from([8, 0, 0, 0, characterSet, 0, 65, 66, 0])
  const places = [0, half, text.length].map(uint32)
  const pieces = [start + text.length - half, start].map((at) =>
    Buffer.concat([Buffer.alloc(2), uint32(at), Buffer.alloc(2)]),
  )
  const table = Buffer.concat([...places, ...pieces])
  const stored = isInPieces ? Buffer.concat([text.subarray(half), text.subarray(0, half)]) : text
  const main = Buffer.alloc(start + text.length + 100)
  main.writeUInt16LE(0xa5dc, 0)
  main.writeUInt16LE(locale, 0x06)
  main.writeUInt16LE(flags | (isInPieces ? 4 : 0), 0x0a)
  main.writeUInt32LE(start, 0x18)
  main.writeUInt32LE(start + text.length, 0x1c)
  main.writeUInt32LE(text.length, 0x34)
  const fontsAt = start + text.length
  main.writeUInt32LE(fontsAt, 0xd0)
  main.writeUInt32LE(2 + font.length, 0xd4)
  main.writeUInt32LE(fontsAt + 20, 0x160)
  stored.copy(main, start)
  font.copy(main, fontsAt + 2)
  Buffer.concat([Buffer.from([2]), uint32(table.length), table]).copy(main, fontsAt + 20)
  return createCompound({ WordDocument: main })
}

function record(type: number, data: Buffer, instance = 0, version = 0): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt16LE((instance << 4) | version, 0)
  head.writeUInt16LE(type, 2)
  head.writeUInt32LE(data.length, 4)
  return Buffer.concat([head, data])
}
const container = (type: number, parts: readonly Buffer[], instance = 0): Buffer =>
  record(type, Buffer.concat(parts), instance, 0xf)

/** Builds a presentation of PowerPoint 97. Titles are in the outline; each slide has a box besides. */
export function createPpt(slides: readonly (readonly [title: string, box: string])[], lock?: Lock): Buffer {
  const persist = (n: number): Buffer =>
    record(0x03f3, Buffer.concat([uint32(n + 2), uint32(0), uint32(0), uint32(256 + n), uint32(0)]))
  const list = slides.flatMap(([title], n) => [
    persist(n),
    record(0x0f9f, uint32(0)),
    record(0x0fa0, Buffer.from(title, 'utf16le')),
  ])
  const parts = [
    container(0x03e8, [container(0x0ff0, list)]),
    ...slides.map(([, box]) =>
      container(0x03ee, [
        record(0x03ef, Buffer.alloc(24)),
        container(0xf00d, [record(0x0f9e, uint32(0))]),
        container(0xf00d, [record(0x0fa8, Buffer.from(box, 'latin1'))]),
      ]),
    ),
  ]
  const stored = lock
    ? [...parts.map((part, n) => lock.encrypt(n + 1, part)), record(0x2f14, lock.info)]
    : parts
  const offsets = stored.map((_, n) => stored.slice(0, n).reduce((sum, { length }) => sum + length, 0))
  const end = stored.reduce((sum, { length }) => sum + length, 0)
  const directory = record(
    0x1772,
    Buffer.concat([uint32(((stored.length << 20) | 1) >>> 0), ...offsets.map(uint32)]),
  )
  const edit = [0, 0, 0, end, 1, 0, 0, ...(lock ? [stored.length] : [])]
  const user = record(
    0x0ff6,
    Buffer.concat([uint32(20), uint32(lock ? 0xf3d1c4df : 0xe391c05f), uint32(end + directory.length)]),
  )
  return createCompound({
    'PowerPoint Document': Buffer.concat([
      ...stored,
      directory,
      record(0x0ff5, Buffer.concat(edit.map(uint32))),
    ]),
    'Current User': user,
  })
}
