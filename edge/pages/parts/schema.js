// Reads the fields of forms from the API reference, so that a form and its route agree.

let reference = null

/** Reads `/openapi.json` once for each page. */
function readReference() {
  reference ??= fetch('/openapi.json').then((response) => {
    if (!response.ok) throw new Error('The API reference is unavailable')
    return response.json()
  })
  reference.catch(() => {
    reference = null
  })
  return reference
}

// Fields of a proof of identity, which its own dialog asks for.
const PROOF_FIELDS = new Set(['password', 'totp_code', 'recovery_code'])

/**
 * Returns the fields of the JSON body of an operation, such as `POST /api/v1/orgs`. Each has `name`, `type` (`string`,
 * `number`, `integer`, `boolean`, `enum`, `strings`, `enums`, `object` or `json`), `isRequired`, `isNullable`, `options`,
 * `help`, `format` and its limits.
 */
export async function readFields(operation) {
  const document = await readReference()
  const [method, path] = operation.split(' ')
  const content = document.paths[path]?.[method.toLowerCase()]?.requestBody?.content?.['application/json']
  if (content === undefined) throw new Error(`${operation} has no JSON body`)
  return fieldsOf(resolve(document, content.schema), document).filter(({ name, isRequired }) => isRequired || !PROOF_FIELDS.has(name))
}

function fieldsOf(schema, document) {
  const required = new Set(schema.required ?? [])
  return Object.entries(schema.properties ?? {}).map(([name, property]) => ({ name, isRequired: required.has(name), ...describe(property, document) }))
}

function resolve(document, schema) {
  if (schema.$ref === undefined) return schema
  const { $ref, ...more } = schema
  return { ...document.components.schemas[$ref.split('/').at(-1)], ...more }
}

function describe(property, document) {
  const outer = resolve(document, property)
  const choices = (outer.anyOf ?? outer.oneOf ?? [outer]).map((choice) => resolve(document, choice))
  const known = choices.filter(({ type }) => type !== 'null')
  const inner = known.length === 1 ? known[0] : {}
  const types = [inner.type].flat().filter((type) => type !== 'null')
  const common = {
    isNullable: known.length < choices.length || [inner.type].flat().includes('null'),
    help: outer.description ?? inner.description,
    label: outer.title,
    format: inner.format,
    min: inner.minimum ?? (inner.exclusiveMinimum !== undefined && types[0] === 'integer' ? inner.exclusiveMinimum + 1 : undefined),
    max: inner.maximum,
    minLength: inner.minLength,
    maxLength: inner.maxLength,
    initial: outer.default,
  }
  if (inner.enum !== undefined) return { ...common, type: 'enum', options: inner.enum }
  if (inner.const !== undefined) return { ...common, type: 'enum', options: [inner.const] }
  if (types[0] === 'array') {
    const items = resolve(document, inner.items ?? {})
    if (items.enum !== undefined) return { ...common, type: 'enums', options: items.enum }
    return { ...common, type: items.type === 'string' ? 'strings' : 'json', maxLength: items.maxLength }
  }
  if (types[0] === 'object' && inner.properties !== undefined) return { ...common, type: 'object', fields: fieldsOf(inner, document) }
  return { ...common, type: ['string', 'number', 'integer', 'boolean'].includes(types[0]) ? types[0] : 'json' }
}
