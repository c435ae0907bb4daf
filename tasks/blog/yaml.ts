import { Document, isScalar, parseDocument, Scalar, visit } from 'yaml'

/** Reads and writes the YAML of front matter. The only importer of `yaml`. */

/**
 * The value of a YAML text. Plain scalars stay text as written, since a title may look like a number (1.10) or a date.
 * Of duplicate keys the last one counts.
 * @throws Error with the position when it is not YAML.
 */
export function parseYaml(text: string): unknown {
  const document = parsed(text)
  const [error] = document.errors
  const lenient = error === undefined ? document : parsed(indented(text))
  if (error !== undefined && lenient.errors.length > 0)
    throw new Error(error.message.split('\n')[0]!.replace(/:$/, ''))
  visit(lenient, {
    Scalar: (_, node) => {
      if (isScalar(node) && node.type === Scalar.PLAIN && node.value !== null && node.source !== undefined)
        node.value = node.source
    },
  })
  return lenient.toJS({ maxAliasCount: 100 })
}

const parsed = (text: string) =>
  parseDocument(text, { uniqueKeys: false, prettyErrors: true, logLevel: 'silent', strict: false })

/** Other parsers let a text continue at the start of the next line if there is no key; YAML requires an indent. */
const indented = (text: string): string => text.replace(/(?<![^\n])(?![\s#-]|[\w"' -]+:)/g, '  ')

/** Keys and values as a YAML block. */
export function writeYaml(values: object): string {
  return new Document(values).toString({
    lineWidth: 0,
    blockQuote: false,
    singleQuote: false,
    // On several lines, the library writes a line of nothing but a space as one of a backslash.
    doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER,
  })
}
