import { parseMarkup } from '../../../tasks/formats/markup.ts'

/** Reads XML by namespace: every writer chooses its own prefixes. */

/**
 * The prefixes by which readers know namespaces. OpenDocument namespaces of version 1.0 are known by their last word.
 */
const KNOWN_PREFIXES: ReadonlyMap<string, string> = new Map([
  ['http://schemas.openxmlformats.org/officeDocument/2006/relationships', 'r'],
  ['http://purl.oclc.org/ooxml/officeDocument/relationships', 'r'],
  ['http://schemas.openxmlformats.org/wordprocessingml/2006/main', 'w'],
  ['http://purl.oclc.org/ooxml/wordprocessingml/main', 'w'],
  ['http://schemas.microsoft.com/office/word/2003/wordml', 'w'],
  ['http://schemas.microsoft.com/office/2006/xmlPackage', 'pkg'],
  ['http://www.w3.org/XML/1998/namespace', 'xml'],
  ['http://www.w3.org/1999/xlink', 'xlink'],
  ['urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0', 'fo'],
])
const OPEN_DOCUMENT_NAMESPACE = /^urn:oasis:names:tc:opendocument:xmlns:([a-z]+):1\.0$/

export type Attributes = Readonly<Record<string, string>>

/**
 * Callbacks in document order. Names of elements are local. Names of attributes have the prefix of `KNOWN_PREFIXES`, or
 * none if they have no namespace.
 */
export interface XmlEvents {
  open?(name: string, attributes: Attributes): void
  close?(name: string): void
  text?(data: string): void
}

/** Strips the namespace prefix of an element or attribute. */
export const stripNamespacePrefix = (name: string): string => name.slice(name.indexOf(':') + 1)

/** Reads any XML, well-formed or not. Throws only errors that `events` throws. */
export function parseXml(xml: string, events: XmlEvents): void {
  const names = new Namespaces()
  parseMarkup(xml, 'xml', {
    open(qualified, attributes) {
      events.open?.(stripNamespacePrefix(qualified), names.open(attributes))
    },
    text(data) {
      events.text?.(data)
    },
    close(qualified) {
      events.close?.(stripNamespacePrefix(qualified))
      names.close()
    },
  })
}

/** The namespace declarations in scope. */
class Namespaces {
  /** The namespace of each declared prefix, as `prefix:` if it is known, else as `{uri}`. */
  readonly #spaces = new Map<string, string>([['xml', 'xml:']])
  /** Overwritten declarations, with the depth of the element that overwrote them. */
  readonly #overwritten: { readonly depth: number; readonly prefix: string; readonly space?: string }[] = []
  #depth = 0

  open(attributes: Attributes): Attributes {
    this.#depth++
    let hasForeignPrefix = false
    for (const name in attributes) {
      if (name.startsWith('xmlns:')) this.#declare(name.slice(6), attributes[name]!)
    }
    for (const name in attributes) hasForeignPrefix ||= this.#resolve(name) !== name
    if (!hasForeignPrefix) return attributes
    return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [this.#resolve(name), value]))
  }

  close(): void {
    for (let last = this.#overwritten.at(-1); last?.depth === this.#depth; last = this.#overwritten.at(-1)) {
      if (last.space === undefined) this.#spaces.delete(last.prefix)
      else this.#spaces.set(last.prefix, last.space)
      this.#overwritten.pop()
    }
    this.#depth--
  }

  #declare(prefix: string, uri: string): void {
    const known = KNOWN_PREFIXES.get(uri) ?? OPEN_DOCUMENT_NAMESPACE.exec(uri)?.[1]
    const space = this.#spaces.get(prefix)
    this.#overwritten.push({ depth: this.#depth, prefix, ...(space !== undefined && { space }) })
    this.#spaces.set(prefix, known === undefined ? `{${uri}}` : `${known}:`)
  }

  /** Returns the name by which readers know an attribute. A prefix without a declaration counts as written. */
  #resolve(name: string): string {
    const colon = name.indexOf(':')
    if (colon === -1 || name.startsWith('xmlns:')) return name
    const space = this.#spaces.get(name.slice(0, colon))
    return space === undefined ? name : space + name.slice(colon + 1)
  }
}
