import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { endWithParent } from '../platform/parent.ts'
import { readCpuMs } from '../platform/process-usage.ts'

/** Compiles and applies JSON Schemas, as the entry point of a process. It ends with its parent, or after an idle time. */

export interface CheckRequest {
  /** JSON text of the schema. */
  readonly schema: string
  /** JSON texts; null only compiles the schema. */
  readonly values: readonly string[] | null
}

/** A problem of a value: the path to the wrong part, and a text. */
export interface SchemaProblem {
  readonly path: readonly (string | number)[]
  readonly message: string
}

/** A process answers each request twice: with its CPU time (ms) when the check starts, and with the problems. */
export type CheckReply = number | readonly (SchemaProblem | null)[]

// Validators by the text of their schema, oldest first.
const compiled = new Map<string, ValidateFunction>()
const MAX_COMPILED = 200

function check({ schema, values }: CheckRequest): readonly (SchemaProblem | null)[] {
  if (values === null) {
    try {
      compile(schema)
      return [null]
    } catch (error) {
      return [{ path: [], message: String((error as Error).message).slice(0, 500) }]
    }
  }
  const validate = compile(schema)
  return values.map((text) => {
    const value: unknown = JSON.parse(text)
    return validate(value) ? null : describe(validate.errors?.[0], value)
  })
}

/** A compiler of its own for each schema, so that an `$id` of one never reaches another. */
function compile(schema: string): ValidateFunction {
  let validate = compiled.get(schema)
  if (validate === undefined) {
    const ajv = new Ajv2020({ strict: false, logger: false, ownProperties: true, validateSchema: true })
    addFormats.default(ajv)
    validate = ajv.compile(JSON.parse(schema))
    if (compiled.size >= MAX_COMPILED) compiled.delete(compiled.keys().next().value!)
    compiled.set(schema, validate)
  }
  return validate
}

function describe(error: ErrorObject | undefined, value: unknown): SchemaProblem {
  const message = error?.message ?? 'does not match the schema'
  const named = error?.params.additionalProperty ?? error?.params.unevaluatedProperty
  const missing = error?.params.missingProperty
  return {
    path: [
      ...parsePointer(error?.instancePath ?? '', value),
      ...(missing === undefined ? [] : [String(missing)]),
    ],
    message: (named === undefined ? message : `${message}: ${String(named)}`).slice(0, 500),
  }
}

/** Parses a JSON Pointer (RFC 6901). Indexes of arrays become numbers. */
function parsePointer(pointer: string, root: unknown): (string | number)[] {
  const path: (string | number)[] = []
  let at = root
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    path.push(Array.isArray(at) ? Number(key) : key)
    at = (at as Record<string, unknown> | undefined)?.[key]
  }
  return path
}

const idleMs = Number(process.argv[2])
let idle = setTimeout(() => process.exit(), idleMs)
endWithParent()
process.on('message', (request: CheckRequest) => {
  clearTimeout(idle)
  process.send!(readCpuMs() satisfies CheckReply)
  // The first answer leaves before the check blocks the event loop.
  setImmediate(() => {
    process.send!(check(request) satisfies CheckReply)
    idle = setTimeout(() => process.exit(), idleMs)
  })
})
