import { Document, isScalar, parseDocument, Scalar, visit } from 'yaml'

/** What front matter is read from and written to. The only importer of `yaml`. */

/**
 * The value of a YAML text. Plain scalars stay the text that they are written as: 1.10 is no number and a date no
 * instant, for whoever reads a title. Of a key that comes twice the last counts.
 * @throws Error with the place, when it is not YAML.
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

/** Other parsers let a text go on at the beginning of the next line, where no key stands; YAML wants it indented. */
const indented = (text: string): string => text.replace(/(?<![^\n])(?![\s#-]|[\w"' -]+:)/g, '  ')

/** Keys and values as a YAML block. */
export function writeYaml(values: object): string {
  return new Document(values).toString({ lineWidth: 0, blockQuote: false, singleQuote: false })
}
