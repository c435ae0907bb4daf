import { Set as Asn1Set, Constructed, Integer, ObjectIdentifier, OctetString, Sequence } from 'asn1js'

/** Builds the envelopes that mail programs put around files: TNEF and S/MIME. */

type TnefAttribute = readonly [id: number, value: Uint8Array]

/** Builds a TNEF file from its attributes (MS-OXTNEF, 2.1.3). */
export function buildTnef(attributes: readonly TnefAttribute[]): Buffer {
  const head = Buffer.from('789f3e220100', 'hex')
  return Buffer.concat([head, ...attributes.map(([id, value]) => buildAttribute(id, value))])
}

function buildAttribute(id: number, value: Uint8Array): Buffer {
  const head = Buffer.alloc(9)
  head.writeUInt8(1, 0)
  head.writeUInt32LE(id, 1)
  head.writeUInt32LE(value.length, 5)
  const sum = Buffer.alloc(2)
  sum.writeUInt16LE(value.reduce((total, byte) => total + byte, 0) & 0xffff)
  return Buffer.concat([head, value, sum])
}

/** Builds a list of properties, whose tags are names as in Outlook files (MS-OXTNEF, 2.1.3.4). */
export function buildTnefProperties(
  properties: Readonly<Record<string, string | Uint8Array | number>>,
): Buffer {
  const all = Object.entries(properties)
  const pieces = all.map(([tag, value]) => {
    const head = toNumber(Number.parseInt(tag, 16))
    if (typeof value === 'number') return Buffer.concat([head, toNumber(value)])
    const bytes = typeof value === 'string' ? Buffer.from(value, 'utf16le') : value
    const padding = Buffer.alloc(-bytes.length & 3)
    return Buffer.concat([head, toNumber(1), toNumber(bytes.length), bytes, padding])
  })
  return Buffer.concat([toNumber(all.length), ...pieces])
}

function toNumber(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

const DATA = '1.2.840.113549.1.7.1'

/** Builds a CMS message of the given type around `content`, in pieces as openssl streams them (RFC 5652). */
export function buildCms(type: string, content: Uint8Array): Buffer {
  const middle = Math.floor(content.length / 2)
  const pieces = [content.subarray(0, middle), content.subarray(middle)].map(
    (valueHex) => new OctetString({ valueHex: Uint8Array.from(valueHex).buffer }),
  )
  const octets = new OctetString({
    idBlock: { isConstructed: true },
    isConstructed: true,
    value: pieces,
  } as never)
  const tagged = (value: unknown): Constructed =>
    new Constructed({ idBlock: { tagClass: 3, tagNumber: 0 }, value: [value] } as never)
  const inner = new Sequence({ value: [new ObjectIdentifier({ value: DATA }), tagged(octets)] })
  const data = new Sequence({ value: [new Integer({ value: 1 }), new Asn1Set({ value: [] }), inner] })
  const message = new Sequence({ value: [new ObjectIdentifier({ value: type }), tagged(data)] })
  return Buffer.from(message.toBER())
}
