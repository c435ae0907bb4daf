import type { Headers, ReplyHead } from './types.ts'

// An import would evaluate all exports of the module, including WebSocket and fetch. It would take 15 ms of CPU per
// start.
const { STATUS_CODES } = process.getBuiltinModule('node:http')

// uWS writes values unchecked: a CR or LF in a value would let an attacker add headers.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern must match control characters
const CONTROL_CHARACTERS = /[\0-\x08\x0a-\x1f\x7f]/
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** Names that match TOKEN. The code uses few names; the size limit guards against a programming error. */
const checkedNames = new Set<string>()

function checkName(name: string): string {
  if (!HEADER_NAME.test(name)) throw new Error(`Invalid header name: ${JSON.stringify(name)}`)
  if (checkedNames.size < 1000) checkedNames.add(name)
  return name
}

function formatHeaders(headers: Headers): string {
  let text = ''
  for (const [name, value] of headers) {
    if (!checkedNames.has(name)) checkName(name)
    if (CONTROL_CHARACTERS.test(value)) throw new Error(`Header ${name} contains a control character`)
    text += `\r\n${name}: ${value}`
  }
  return text
}

/** Constant headers that many responses share, validated and formatted once. */
export class HeaderBlock {
  readonly text: string

  /** @throws on a control character or an invalid name. */
  constructor(headers: Headers) {
    this.text = formatHeaders(headers)
  }
}

export const JSON_TYPE = 'application/json; charset=utf-8'
/** Prevents a browser that displays JSON as a page from loading anything. */
export const JSON_SECURITY_POLICY = [
  'content-security-policy',
  "default-src 'none'; frame-ancestors 'none'",
] as const
export const JSON_HEADER_BLOCK = new HeaderBlock([['content-type', JSON_TYPE], JSON_SECURITY_POLICY])

/** Formats the response heads of one server, each with its common headers. */
export class Heads {
  private readonly common: HeaderBlock
  /** Status line and common headers, by status. */
  private readonly statusLines: string[] = []

  constructor(common: Headers) {
    this.common = new HeaderBlock(common)
  }

  /**
   * Formats status and headers as one string for writeStatus, which writes it unchanged and ends the line. It replaces
   * one call into C++ per header with a single call.
   * @throws on a control character, an invalid name or an unknown status, before anything is written.
   */
  text(head: ReplyHead): string {
    const start = this.statusLines[head.status] ?? this.formatStatusLine(head.status)
    const block = head.block === undefined ? start : start + head.block.text
    return head.headers.length === 0 ? block : block + formatHeaders(head.headers)
  }

  private formatStatusLine(status: number): string {
    const text = STATUS_CODES[status]
    if (text === undefined) throw new Error(`Unknown HTTP status: ${status}`)
    const start = `${status} ${text}${this.common.text}`
    this.statusLines[status] = start
    return start
  }
}

/** True if responses with this status have no body and so no Content-Length (RFC 9110, section 8.6). */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 304
}
