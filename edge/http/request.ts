import { HEADERS, type LowerCaseHeaderName } from './names.ts'
import type { EdgeRequest, NativeRequest, NativeResponse, RequestBody, Responder } from './types.ts'

const INDEX = new Map<string, number>(HEADERS.map((name, i) => [name, i]))
const FORWARDED_FOR = HEADERS.indexOf('x-forwarded-for')
const HOST = HEADERS.indexOf('host')
const LENGTH = HEADERS.indexOf('content-length')
const CODING = HEADERS.indexOf('transfer-encoding')
const NO_VALUES: readonly string[] = HEADERS.map(() => '')

// forEach calls back synchronously and one request is copied at a time, so one visitor serves all.
let target: string[] = []
let hosts = 0
let misframed = false
const visit = (name: string, value: string) => {
  const i = INDEX.get(name)
  if (i === undefined) return
  if (i === HOST) hosts++
  // 10 ns per request for both. The core uses the first length, and reads any coding, even an empty one, as chunked or
  // none.
  else if (i === LENGTH) misframed ||= target[i] !== '' && target[i] !== value
  else if (i === CODING) misframed ||= target[i] !== '' || value.toLowerCase() !== 'chunked'
  if (target[i] === '') target[i] = value
  // Some proxies add a line of their own (RFC 9110, section 5.3), which the client's must not hide.
  else if (i === FORWARDED_FOR) target[i] += `, ${value}`
}

const NO_BODY: RequestBody = {
  bytes: () => Promise.resolve(new Uint8Array(0)),
  stream: () => Promise.resolve(0),
}

/** A copy of the request that outlives uWS's own, which is invalid once the handler returns. */
export class Request implements EdgeRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  /** Other parsers may disagree on where it ends or which host it is for (RFC 9112, sections 3.2 and 6.3). */
  readonly misframed: boolean
  body: RequestBody = NO_BODY
  private readonly values: string[]
  private readonly res: NativeResponse
  private readonly responder: Responder
  private text: string | undefined = undefined

  constructor(method: string, res: NativeResponse, req: NativeRequest, responder: Responder) {
    this.method = method
    this.path = req.getUrl()
    // Read once, in full: getQuery(key) decodes in place and corrupts every later read. Undefined when there is none.
    this.query = req.getQuery() ?? ''
    this.values = NO_VALUES.slice()
    target = this.values
    hosts = 0
    misframed = false
    req.forEach(visit)
    this.misframed = misframed || hosts !== 1
    this.res = res
    this.responder = responder
  }

  header(name: LowerCaseHeaderName): string {
    return this.values[INDEX.get(name) as number] as string
  }

  get address(): string {
    if (this.text === undefined) {
      // getpeername and a copy, 0.6 µs: too expensive for every request.
      this.text = this.responder.done ? '' : addressText(new Uint8Array(this.res.getRemoteAddress()))
    }
    return this.text
  }
}

/** The text of 4 or 16 bytes of an IP address, IPv6 as in RFC 5952; '' for any other length. */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.length !== 16) return ''
  const groups: number[] = []
  for (let i = 0; i < 16; i += 2) groups.push(((bytes[i] as number) << 8) | (bytes[i + 1] as number))
  if (groups[5] === 0xffff && groups.every((group, i) => i > 4 || group === 0))
    return bytes.subarray(12).join('.')
  const zeros = longestZeros(groups)
  const hex = groups.map((group) => group.toString(16))
  if (zeros.length < 2) return hex.join(':')
  return `${hex.slice(0, zeros.start).join(':')}::${hex.slice(zeros.start + zeros.length).join(':')}`
}

function longestZeros(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 }
  for (let start = 0; start < groups.length; start++) {
    let end = start
    while (groups[end] === 0) end++
    if (end - start > best.length) best = { start, length: end - start }
  }
  return best
}
