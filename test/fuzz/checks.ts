import { Ajv2020, type ValidateFunction } from '@redocly/ajv/dist/2020.js'
import formats from 'ajv-formats'
import type { Answer, SentRequest } from './client.ts'
import { type Document, nameOf } from './document.ts'

/** Checks the status, content type and body of answers against the document. */
export class Checks {
  private readonly ajv = new Ajv2020({ strict: false, logger: false, allErrors: true })
  private readonly compiled = new Map<string, ValidateFunction>()

  constructor(document: Document) {
    // ajv-formats declares its parameter with the types of another copy of ajv.
    const addFormats = formats as unknown as (ajv: Ajv2020) => void
    addFormats(this.ajv)
    this.ajv.addSchema({ ...document } as never, 'document')
  }

  /** Returns the defect of an answer, in words that are the same for each occurrence; null if the answer is correct. */
  findProblem(sent: SentRequest, answer: Answer): string | null {
    const { status, headers, bytes } = answer
    // 431 comes from the HTTP parser, before any route.
    if (status === 431) return null
    const text = bytes.toString()
    if (headers['x-request-id'] === undefined) return 'no X-Request-Id'
    if (status === 500) return 'internal error'
    if (status === 401 && !headers['www-authenticate']?.startsWith('Bearer realm='))
      return 'no WWW-Authenticate'
    if (status === 405 && headers.allow === undefined) return 'no Allow'
    if (sent.method === 'HEAD' && bytes.length > 0) return 'a body for HEAD'
    if (status >= 400 && LEAK.test(text)) return 'the error leaks internals'
    if (reachedNoRoute(sent, status, text)) return status < 400 ? null : this.checkError(sent, answer)
    const declared = sent.operation.responses
    const key = [String(status), `${String(status)[0]}XX`].find((each) => declared[each] !== undefined)
    // 5XX means an overload or a failure, which no request here should cause.
    if (key === undefined || key === '5XX') return 'undeclared status'
    if (status >= 400) return this.checkError(sent, answer)
    return this.checkSuccess(sent, answer, key)
  }

  private checkError(sent: SentRequest, answer: Answer): string | null {
    if (sent.method === 'HEAD') return null
    if (!isJson(answer)) return 'an error that is not JSON'
    const schema = '#/components/schemas/Problem'
    return this.findMismatch(schema, answer)
  }

  private checkSuccess(sent: SentRequest, answer: Answer, key: string): string | null {
    const { status, headers, bytes } = answer
    if (status === 204 || status === 304) return bytes.length === 0 ? null : 'a body where none is allowed'
    const content = sent.operation.responses[key]!.content ?? sent.operation.responses[200]?.content ?? {}
    const type = headers['content-type']?.split(';', 1)[0] ?? ''
    const types = Object.keys(content)
    // HEAD gets no content type while the job is running, because the headers of its answer are unknown.
    if (sent.method === 'HEAD' && type === '') return null
    if (types.length > 0 && !types.some((each) => includesType(each, type))) return `undeclared type ${type}`
    if (!isJson(answer) || content['application/json'] === undefined || sent.method === 'HEAD') return null
    const { method, path } = sent.operation
    const steps = [path, method.toLowerCase(), 'responses', key, 'content', 'application/json', 'schema']
    return this.findMismatch(`#/paths/${steps.map(encodePointer).join('/')}`, answer)
  }

  private findMismatch(schema: string, { bytes }: Answer): string | null {
    let value: unknown
    try {
      value = JSON.parse(bytes.toString())
    } catch {
      return 'a body that is not JSON'
    }
    const validate = this.compiled.get(schema) ?? this.ajv.compile({ $ref: `document${schema}` })
    this.compiled.set(schema, validate)
    if (validate(value)) return null
    const [error] = validate.errors!
    const where = error!.instancePath.replace(/\d+/g, 'n')
    return `the body does not match its schema: ${where} ${error!.message}`
  }
}

// Internals that answers must not reveal: paths, exceptions, statements and addresses of other services.
const LEAK = /node_modules|\bat \S+ \(|\.ts:\d|Error: |\bselect .+ from\b|constraint "|ECONN|127\.0\.0\.1/

/** True if the request reached no operation, because its path or method is unknown or the path cannot be decoded. */
function reachedNoRoute(sent: SentRequest, status: number, text: string): boolean {
  if (status === 405 || sent.method === 'OPTIONS') return true
  const isHead = sent.method === 'HEAD' && sent.operation.method === 'GET'
  if (sent.method !== sent.operation.method && !isHead) return true
  if (status === 404) return sent.method === 'HEAD' || text.includes('No such path')
  return status === 400 && !isDecodable(sent.target.split('?', 1)[0]!)
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

const isJson = ({ headers }: Answer): boolean =>
  headers['content-type']?.startsWith('application/json') === true

/** True if the declared type, which may be a range, includes `type`. */
const includesType = (declared: string, type: string): boolean =>
  declared === type ||
  declared === '*/*' ||
  (declared.endsWith('/*') && type.startsWith(declared.slice(0, -1)))

const encodePointer = (part: string): string =>
  encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))

export const signatureOf = (sent: SentRequest, status: number, problem: string): string =>
  `${nameOf(sent.operation)} ${status} ${problem}`
