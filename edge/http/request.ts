import { HEADERS, type LowerCaseHeaderName } from './request-headers.ts'
import type { EdgeRequest, NativeRequest, NativeResponse, RequestBody, Responder } from './types.ts'

const HEADER_INDEX = new Map<string, number>(HEADERS.map((name, i) => [name, i]))
const FORWARDED_FOR = HEADERS.indexOf('x-forwarded-for')
const HOST = HEADERS.indexOf('host')
const CONTENT_LENGTH = HEADERS.indexOf('content-length')
const TRANSFER_ENCODING = HEADERS.indexOf('transfer-encoding')
const EMPTY_VALUES: readonly string[] = HEADERS.map(() => '')

// forEach is synchronous, so all requests share one callback and its state.
let targetValues: string[] = []
let hostCount = 0
let misframed = false
const copyHeader = (name: string, value: string) => {
  const i = HEADER_INDEX.get(name)
  if (i === undefined) return
  if (i === HOST) hostCount++
  // uWS uses the first Content-Length. It treats any Transfer-Encoding, even an empty one, either as chunked or as
  // absent. Both checks together cost 10 ns per request.
  else if (i === CONTENT_LENGTH) misframed ||= targetValues[i] !== '' && targetValues[i] !== value
  else if (i === TRANSFER_ENCODING) misframed ||= targetValues[i] !== '' || value.toLowerCase() !== 'chunked'
  if (targetValues[i] === '') targetValues[i] = value
  // Some proxies add a second line (RFC 9110, section 5.3). Join the lines, so that the client's line does not hide the
  // proxy's.
  else if (i === FORWARDED_FOR) targetValues[i] += `, ${value}`
}

const NO_BODY: RequestBody = {
  readBytes: () => Promise.resolve(new Uint8Array(0)),
  streamTo: () => Promise.resolve(0),
}

/** A copy of uWS's request, which is invalid once the handler returns. */
export class Request implements EdgeRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  /** True if other parsers may disagree on the end or the host of the request (RFC 9112, sections 3.2 and 6.3). */
  readonly isMisframed: boolean
  body: RequestBody = NO_BODY
  private readonly values: string[]
  private readonly res: NativeResponse
  private readonly responder: Responder
  private cachedAddress: string | undefined = undefined

  constructor(method: string, res: NativeResponse, req: NativeRequest, responder: Responder) {
    this.method = method
    this.path = req.getUrl()
    // Reads the whole query, because getQuery(key) decodes in place and corrupts later reads.
    this.query = req.getQuery() ?? ''
    this.values = EMPTY_VALUES.slice()
    targetValues = this.values
    hostCount = 0
    misframed = false
    req.forEach(copyHeader)
    this.isMisframed = misframed || hostCount !== 1
    this.res = res
    this.responder = responder
  }

  header(name: LowerCaseHeaderName): string {
    return this.values[HEADER_INDEX.get(name) as number] as string
  }

  get address(): string {
    if (this.cachedAddress === undefined) {
      // Reading the address takes 0.6 µs (getpeername and a copy), too much for every request.
      this.cachedAddress = this.responder.isDone
        ? ''
        : formatAddress(new Uint8Array(this.res.getRemoteAddress()))
    }
    return this.cachedAddress
  }
}

/** Formats the 4 or 16 bytes of an IP address, IPv6 as in RFC 5952; '' for any other length. */
export function formatAddress(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.length !== 16) return ''
  const groups: number[] = []
  for (let i = 0; i < 16; i += 2) groups.push(((bytes[i] as number) << 8) | (bytes[i + 1] as number))
  if (groups[5] === 0xffff && groups.every((group, i) => i > 4 || group === 0))
    return bytes.subarray(12).join('.')
  const zeros = findLongestZeros(groups)
  const hex = groups.map((group) => group.toString(16))
  if (zeros.length < 2) return hex.join(':')
  return `${hex.slice(0, zeros.start).join(':')}::${hex.slice(zeros.start + zeros.length).join(':')}`
}

function findLongestZeros(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 }
  for (let start = 0; start < groups.length; start++) {
    let end = start
    while (groups[end] === 0) end++
    if (end - start > best.length) best = { start, length: end - start }
  }
  return best
}
