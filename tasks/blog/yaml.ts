import { Document, isScalar, parseDocument, Scalar, visit } from 'yaml'

/** Reads and writes the YAML of front matter. No other module imports `yaml`. */

/**
 * Parses YAML. Keeps plain scalars as text, because a title may look like a number (1.10) or a date. If a key occurs
 * more than once, the last value wins.
 *
 * @throws Error with the position if the YAML is invalid.
 */
export function parseYaml(text: string): unknown {
  const document = parseDocumentLeniently(text)
  const [error] = document.errors
  const lenient = error === undefined ? document : parseDocumentLeniently(indentContinuations(text))
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

const parseDocumentLeniently = (text: string) =>
  parseDocument(text, {
    merge: true,
    uniqueKeys: false,
    prettyErrors: true,
    logLevel: 'silent',
    strict: false,
  })

/** Indents unindented continuation lines, which other parsers accept and YAML does not. */
const indentContinuations = (text: string): string => text.replace(/(?<![^\n])(?![\s#-]|[\w"' -]+:)/g, '  ')

/** Formats keys and values as a YAML block. */
export function writeYaml(values: object): string {
  return new Document(values).toString({
    lineWidth: 0,
    blockQuote: false,
    singleQuote: false,
    // Avoids multi-line strings, in which the library corrupts lines that consist of one space.
    doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER,
  })
}
