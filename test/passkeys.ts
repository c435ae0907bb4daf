import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** Simulates a passkey authenticator and its browser (WebAuthn Level 3), with ES256 and attestation `none`. */

type Cbor = number | string | Uint8Array | ReadonlyMap<number | string, Cbor>

/** Encodes a value as CBOR (RFC 8949). Supports only the types in credentials. */
export function encodeCbor(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? encodeHead(1, -1 - value) : encodeHead(0, value)
  if (typeof value === 'string')
    return Buffer.concat([encodeHead(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (value instanceof Uint8Array) return Buffer.concat([encodeHead(2, value.length), value])
  return Buffer.concat([
    encodeHead(5, value.size),
    ...[...value].flatMap(([key, of]) => [encodeCbor(key), encodeCbor(of)]),
  ])
}

function encodeHead(major: number, length: number): Buffer {
  if (length < 24) return Buffer.from([(major << 5) | length])
  if (length < 256) return Buffer.from([(major << 5) | 24, length])
  return Buffer.from([(major << 5) | 25, length >> 8, length & 255])
}

const sha256 = (data: string | Uint8Array): Buffer => createHash('sha256').update(data).digest()
const base64url = (data: string | Uint8Array): string => Buffer.from(data).toString('base64url')

// Bits of the authenticator data flags.
const [PRESENT, VERIFIED, ELIGIBLE, BACKED_UP, ATTESTED] = [1, 4, 8, 16, 64]

/** Deviations with which tests simulate a hostile or broken client. */
export interface Deviation {
  readonly origin?: string
  readonly rpId?: string
  readonly type?: string
  readonly challenge?: string
  readonly crossOrigin?: boolean
  readonly topOrigin?: string
  /** False to clear the flag for user presence; default true. */
  readonly present?: boolean
  readonly verified?: boolean
  /** Replaces the signature count. */
  readonly counter?: number
  readonly userHandle?: string
  readonly format?: string
  readonly alg?: number
  /** True to sign data that differs from the response. */
  readonly forged?: boolean
}

interface CredentialOptions {
  readonly challenge: string
  readonly user?: { readonly id: string }
  readonly rp?: { readonly id: string }
  readonly rpId?: string
}

export class Authenticator {
  readonly origin: string
  readonly id: Buffer
  private readonly secret: KeyObject
  private readonly publicKey: KeyObject
  private userHandle = ''
  counter: number
  private readonly counts: boolean

  constructor(origin: string, { counts = true } = {}) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.origin = origin
    this.id = randomBytes(32)
    this.secret = privateKey
    this.publicKey = publicKey
    this.counts = counts
    this.counter = 0
  }

  /** The public key in COSE format. */
  get coseKey(): Buffer {
    return this.key()
  }

  private key(alg = -7): Buffer {
    const { x, y } = this.publicKey.export({ format: 'jwk' })
    const [px, py] = [x, y].map((part) => Buffer.from(part!, 'base64url')) as [Buffer, Buffer]
    return encodeCbor(
      new Map<number, Cbor>([
        [1, 2],
        [3, alg],
        [-1, 1],
        [-2, px],
        [-3, py],
      ]),
    )
  }

  /** Creates the credential. Returns `toJSON()` of the result of `navigator.credentials.create`. */
  create(options: CredentialOptions, twist: Deviation = {}) {
    this.userHandle = options.user!.id
    const attested = [Buffer.alloc(16), Buffer.from([0, this.id.length]), this.id, this.key(twist.alg)]
    const authData = Buffer.concat([this.data(twist.rpId ?? options.rp!.id, twist, ATTESTED), ...attested])
    const object = new Map<string, Cbor>([
      ['fmt', twist.format ?? 'none'],
      ['attStmt', new Map()],
      ['authData', authData],
    ])
    return this.credential({
      clientDataJSON: base64url(this.client('webauthn.create', options, twist)),
      attestationObject: base64url(encodeCbor(object)),
      transports: ['internal', 'hybrid'],
    })
  }

  /** Signs in. Returns `toJSON()` of the result of `navigator.credentials.get`. */
  get(options: CredentialOptions, twist: Deviation = {}) {
    if (this.counts) this.counter++
    const client = this.client('webauthn.get', options, twist)
    const data = this.data(twist.rpId ?? options.rpId!, twist, 0)
    const signed = Buffer.concat([data, sha256(twist.forged ? 'something else' : client)])
    return this.credential({
      clientDataJSON: base64url(client),
      authenticatorData: base64url(data),
      signature: base64url(sign('sha256', signed, this.secret)),
      userHandle: twist.userHandle ?? this.userHandle,
    })
  }

  private credential<R extends object>(response: R) {
    const id = base64url(this.id)
    return {
      id,
      rawId: id,
      type: 'public-key',
      response,
      clientExtensionResults: {},
      authenticatorAttachment: 'platform',
    }
  }

  private client(type: string, options: CredentialOptions, twist: Deviation): string {
    return JSON.stringify({
      type: twist.type ?? type,
      challenge: twist.challenge ?? options.challenge,
      origin: twist.origin ?? this.origin,
      crossOrigin: twist.crossOrigin ?? false,
      ...(twist.topOrigin && { topOrigin: twist.topOrigin }),
    })
  }

  private data(
    rpId: string,
    { present = true, verified = true, counter = this.counter }: Deviation,
    more: number,
  ): Buffer {
    const count = Buffer.alloc(4)
    count.writeUInt32BE(counter)
    const flags = (present ? PRESENT : 0) | (verified ? VERIFIED : 0) | ELIGIBLE | BACKED_UP | more
    return Buffer.concat([sha256(rpId), Buffer.from([flags]), count])
  }
}
