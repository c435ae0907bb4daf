import { inflateSync } from 'node:zlib'
import { Constructed, fromBER, ObjectIdentifier, OctetString } from 'asn1js'
import { decodeLatin1 } from '../../../tasks/formats/encodings.ts'

/** Opens S/MIME messages (RFC 5652, RFC 8551). The only importer of `asn1js`. Does not verify signatures. */

const OBJECT = {
  signed: '1.2.840.113549.1.7.2',
  enveloped: '1.2.840.113549.1.7.3',
  encrypted: '1.2.840.113549.1.7.6',
  compressed: '1.2.840.113549.1.9.16.1.9',
  authEnveloped: '1.2.840.113549.1.9.16.1.23',
}
const ENCRYPTED: readonly string[] = [OBJECT.enveloped, OBJECT.encrypted, OBJECT.authEnveloped]

// Limit of the content of a compressed message.
const MAX_INFLATED_BYTES = 256 * 2 ** 20

/** Returns the content of a signed or compressed message; null if it has none, or if it is no such message. */
export function openCms(bytes: Uint8Array): Uint8Array | 'encrypted' | null {
  try {
    const [type, data] = childrenOf(parse(toDer(bytes)))
    const kind = type instanceof ObjectIdentifier ? type.getValue() : ''
    if (ENCRYPTED.includes(kind)) return 'encrypted'
    const [, , third] = childrenOf(childrenOf(data)[0])
    const octets = childrenOf(childrenOf(third)[1])[0]
    const content = octets instanceof OctetString ? new Uint8Array(octets.getValue()) : null
    if (kind === OBJECT.signed) return content
    return kind === OBJECT.compressed && content !== null
      ? inflateSync(content, { maxOutputLength: MAX_INFLATED_BYTES })
      : null
  } catch {
    return null
  }
}

// A signed file of 200 MB has this many pieces of 200 bytes.
const MAX_NODES = 1_000_000

function parse(bytes: Uint8Array): unknown {
  const limits = { maxNodes: MAX_NODES, maxContentLength: bytes.length, parseEmbedded: false }
  return fromBER(bytes as Uint8Array<ArrayBuffer>, limits).result
}

const childrenOf = (node: unknown): readonly unknown[] =>
  node instanceof Constructed ? node.valueBlock.value : []

/** Decodes the text form (RFC 7468). */
function toDer(bytes: Uint8Array): Uint8Array {
  if (bytes[0] === 0x30) return bytes
  const text = decodeLatin1(bytes).replace(/-----[^\n]*-----/g, '')
  return Buffer.from(text, 'base64')
}
