import { posix } from 'node:path'
import { parseMarkup } from '../../../tasks/formats/markup.ts'
import { Unreadable } from '../images/images.ts'
import { readHtmlPage } from '../markdown/html.ts'
import { Archive, keepFirstOfEach } from './archive.ts'
import { findEnough } from './held.ts'
import { HTML_RULES } from './held-markup.ts'
import { countTexts } from './held-parts.ts'
import type { PagedText } from './texts.ts'
import { stripNamespacePrefix } from './xml.ts'

/** Opens an electronic book (EPUB 3.3): one page per chapter, in reading order. @throws Unreadable. */
export async function openEpub(bytes: Uint8Array): Promise<PagedText> {
  const archive = await Archive.open(bytes)
  let packagePath = ''
  parseMarkup(await archive.readRequired('META-INF/container.xml'), 'xml', {
    open: (name, attributes) => {
      if (stripNamespacePrefix(name) === 'rootfile') packagePath ||= attributes['full-path'] ?? ''
    },
  })
  const hrefs = new Map<string, string>()
  const spine = new Set<string>()
  parseMarkup(await archive.readRequired(packagePath), 'xml', {
    open: (name, { id = '', href = '', idref = '' }) => {
      if (stripNamespacePrefix(name) === 'item') hrefs.set(id, href)
      else if (stripNamespacePrefix(name) === 'itemref') spine.add(idref)
    },
  })
  const folder = posix.dirname(packagePath)
  const chapters = keepFirstOfEach(
    [...spine].map((id) => ({ path: posix.join(folder, decodeHref(hrefs.get(id) ?? '')) })),
  )
  const encrypted = (await archive.text('META-INF/encryption.xml')) ?? ''
  const pageCount = Math.max(1, chapters.length)
  return {
    pageCount,
    ...archive.describePages(pageCount),
    holdings: {
      unit: 'page',
      letters(page, read) {
        const chapter = chapters[page - 1]?.path
        const paths =
          chapter === undefined ? archive.paths.filter((path) => /\.x?html?$/.test(path)) : [chapter]
        return countTexts(archive, paths, HTML_RULES, findEnough(read))
      },
    },
    async read(page) {
      const chapter = chapters[page - 1]?.path
      if (chapter === undefined) return { text: '', markdown: null }
      // Many books encrypt just their fonts, so check only this chapter.
      if (encrypted.includes(`"${chapter}"`)) throw new Unreadable('The chapter is encrypted')
      return readHtmlPage(await archive.readRequired(chapter))
    },
  }
}

function decodeHref(href: string): string {
  try {
    return decodeURIComponent(href)
  } catch {
    return href
  }
}
