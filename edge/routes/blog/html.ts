import MarkdownIt from 'markdown-it'

/**
 * Renders Markdown as HTML for feeds. HTML in the Markdown is shown as text, and links to scripts stay text, so the result
 * needs no sanitizing.
 */

const markdown = new MarkdownIt({ html: false })

const resolve = (address: string, base: string): string =>
  URL.canParse(address, base) ? new URL(address, base).href : address

for (const [rule, attribute] of [
  ['link_open', 'href'],
  ['image', 'src'],
] as const) {
  const render =
    markdown.renderer.rules[rule] ??
    ((tokens, index, options, _, self) => self.renderToken(tokens, index, options))
  markdown.renderer.rules[rule] = (tokens, index, options, environment, self) => {
    const token = tokens[index]!
    token.attrSet(attribute, resolve(String(token.attrGet(attribute) ?? ''), String(environment?.base)))
    return render(tokens, index, options, environment, self)
  }
}

/** Renders a post's Markdown. Its links and images get absolute addresses. */
export const renderHtml = (content: string, base: string): string => markdown.render(content, { base })
