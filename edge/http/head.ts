import type { Headers, ReplyHead } from './types.ts'

// An import would read all exports of the module, and so load its WebSocket and fetch: 15 ms of CPU at every start.
const { STATUS_CODES } = process.getBuiltinModule('node:http')

// uWS writes values unchecked: one CR or LF in a value would let an attacker add headers.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL = /[\0-\x08\x0a-\x1f\x7f]/
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** Names that passed TOKEN. They come from code, so they are few; the bound guards against a mistake. */
const names = new Set<string>()

function checkedName(name: string): string {
  if (!TOKEN.test(name)) throw new Error(`Not a header name: ${JSON.stringify(name)}`)
  if (names.size < 1000) names.add(name)
  return name
}

function lines(headers: Headers): string {
  let text = ''
  for (const [name, value] of headers) {
    if (!names.has(name)) checkedName(name)
    if (CONTROL.test(value)) throw new Error(`Control character in the header ${name}`)
    text += `\r\n${name}: ${value}`
  }
  return text
}

/** Constant headers of many responses, checked and formatted once. */
export class HeaderBlock {
  readonly text: string

  /** @throws on a control character. */
  constructor(headers: Headers) {
    this.text = lines(headers)
  }
}

export const JSON_TYPE = 'application/json; charset=utf-8'
/** A browser that shows JSON as a page loads nothing for it. */
export const JSON_POLICY = ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"] as const
export const JSON_BLOCK = new HeaderBlock([['content-type', JSON_TYPE], JSON_POLICY])

/** Formats the heads of a server's responses, which all have its common headers. */
export class Heads {
  private readonly common: HeaderBlock
  /** Status lines with the common headers, by status. */
  private readonly starts: string[] = []

  constructor(common: Headers) {
    this.common = new HeaderBlock(common)
  }

  /**
   * Status and headers as one string for writeStatus, which writes it unchanged and ends the line: one call into C++ for
   * any number of headers, instead of one per writeHeader.
   * @throws on a control character or an unknown status, before anything is written.
   */
  text(head: ReplyHead): string {
    const start = this.starts[head.status] ?? this.start(head.status)
    const block = head.block === undefined ? start : start + head.block.text
    return head.headers.length === 0 ? block : block + lines(head.headers)
  }

  private start(status: number): string {
    const text = STATUS_CODES[status]
    if (text === undefined) throw new Error(`Not a status: ${status}`)
    const start = `${status} ${text}${this.common.text}`
    this.starts[status] = start
    return start
  }
}

/** Whether responses with this status have no body and therefore no Content-Length (RFC 9110 8.6). */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 304
}
