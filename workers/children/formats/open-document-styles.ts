import { parseXml } from './xml.ts'

/** Reads which styles of an OpenDocument file end pages (ISO/IEC 26300-3, 20.184 and 20.185), and which number lists. */

interface Breaks {
  before?: boolean
  after?: boolean
  parent?: string
  outline?: string
}

// LibreOffice names its styles of headings so, in any language.
const HEADING_STYLE = /^paragraph Heading(?:_20_| )([1-9])$/

// Limit of styles that are based on one another.
const MAX_DEPTH = 20
const PAGE_BREAK = /^(page|even-page|odd-page)$/

export class PageBreakStyles {
  readonly #styles = new Map<string, Breaks>()
  // The levels with numbers, as `name level`.
  readonly #numbered = new Set<string>()

  /** Adds the styles of a part. */
  add(xml: string): void {
    let style: Breaks | null = null
    let list = ''
    parseXml(xml, {
      open: (name, attributes) => {
        if (name === 'style') {
          const family = attributes['style:family'] ?? 'paragraph'
          style = { parent: `${family} ${attributes['style:parent-style-name'] ?? ''}` }
          if (attributes['style:default-outline-level'])
            style.outline = attributes['style:default-outline-level']
          // A style with a page layout begins a page of that layout.
          if (attributes['style:master-page-name']) style.before = true
          this.#styles.set(`${family} ${attributes['style:name'] ?? ''}`, style)
        } else if (name === 'list-style') list = attributes['style:name'] ?? ''
        else if (name === 'list-level-style-number' && attributes['style:num-format'])
          this.#numbered.add(`${list} ${attributes['text:level'] ?? '1'}`)
        else if (style !== null && /^(paragraph|table)-properties$|^properties$/.test(name)) {
          const { 'fo:break-before': before, 'fo:break-after': after } = attributes
          if (before !== undefined) style.before ||= PAGE_BREAK.test(before)
          if (after !== undefined) style.after = PAGE_BREAK.test(after)
        }
      },
      close: (name) => {
        if (name === 'style') style = null
      },
    })
  }

  /** Returns the outline level of a paragraph's style, from 1; null if neither it nor those that it is based on have one. */
  findOutline(name: string | undefined): number | null {
    let key = `paragraph ${name ?? ''}`
    for (let depth = 0; depth < MAX_DEPTH; depth++) {
      if (key === 'paragraph Title') return 1
      const style = this.#styles.get(key)
      const level = Number(style?.outline ?? HEADING_STYLE.exec(key)?.[1] ?? 0)
      if (level > 0) return level
      key = style?.parent ?? ''
    }
    return null
  }

  /** True if a list style has numbers at a level, counted from 1. */
  isNumbered(style: string, level: number): boolean {
    return this.#numbered.has(`${style} ${level}`)
  }

  breaksBefore(family: 'paragraph' | 'table', name: string | undefined): boolean {
    return this.#find(`${family} ${name ?? ''}`, 'before')
  }

  breaksAfter(family: 'paragraph' | 'table', name: string | undefined): boolean {
    return this.#find(`${family} ${name ?? ''}`, 'after')
  }

  #find(name: string, property: 'before' | 'after'): boolean {
    let style = this.#styles.get(name)
    for (let depth = 0; style !== undefined && depth < MAX_DEPTH; depth++) {
      if (style[property] !== undefined) return style[property]
      style = this.#styles.get(style.parent ?? '')
    }
    return false
  }
}
