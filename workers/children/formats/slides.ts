import { type Archive, keepFirstOfEach, type Relation } from './archive.ts'
import { findEnough } from './held.ts'
import { SLIDE_RULES } from './held-markup.ts'
import { countTexts } from './held-parts.ts'
import { addOfficeText } from './office-text.ts'
import { type ReadEmbedded, RelatedParts } from './related.ts'
import { PageCollector, type PagedText } from './texts.ts'
import { parseXml } from './xml.ts'

/** Opens Office Open XML presentations (ECMA-376, part 1, chapter 19). */

const SLIDE_TYPE = /presentationml\.slide\+xml$/

/** A part that belongs to a slide. */
interface SlidePart {
  readonly path: string
  /** True for the slide's layout and master. */
  readonly isLayout: boolean
  readonly shown: readonly Relation[]
}

/**
 * Opens a presentation: one page per slide, with its charts and diagrams, the texts of its layout, its notes and its
 * comments. A part counts once, on the first slide that refers to it. @throws Unreadable.
 */
export async function openPptx(archive: Archive, readEmbedded?: ReadEmbedded): Promise<PagedText> {
  const related = new RelatedParts(archive, readEmbedded)
  const slides = await listSlides(archive, related)
  const pageCount = Math.max(1, slides.length)
  return {
    pageCount,
    ...archive.describePages(pageCount, await archive.placePictures(slides)),
    holdings: {
      unit: 'slide',
      async letters(page, read) {
        const own = slides[page - 1]?.filter(({ isLayout }) => !isLayout).map(({ path }) => path)
        const paths = own ?? (await archive.listParts(SLIDE_TYPE))
        return await countTexts(archive, paths, SLIDE_RULES, findEnough(read))
      },
    },
    async read(page) {
      const pages = new PageCollector()
      for (const [n, { path, isLayout, shown }] of (slides[page - 1] ?? []).entries()) {
        const options = {
          related: await related.read(shown),
          withoutPlaceholders: isLayout,
          isSlide: n === 0,
        }
        addOfficeText((await archive.text(path)) ?? '', pages, options)
        pages.add('\n')
      }
      return { text: pages.end().join('\n'), markdown: pages.markdown[0] ?? null }
    },
  }
}

/** Lists the slides in order, each with its parts. */
async function listSlides(archive: Archive, related: RelatedParts): Promise<(readonly SlidePart[])[]> {
  const main = await archive.findMainPart()
  const paths = new Map((await archive.readRelations(main)).map(({ id, path }) => [id, path]))
  const named: { readonly path: string }[] = []
  parseXml(await archive.readRequired(main), {
    open: (name, attributes) => {
      const path = name === 'sldId' ? paths.get(attributes['r:id'] ?? '') : undefined
      if (path !== undefined) named.push({ path })
    },
  })
  const seen = new Set<string>()
  const describe = async (path: string, isLayout = false): Promise<SlidePart> => ({
    path,
    isLayout,
    shown: await related.list(path),
  })
  const slides: (readonly SlidePart[])[] = []
  for (const { path } of keepFirstOfEach(named, seen)) {
    const parts = [await describe(path)]
    const relations = await archive.readRelations(path)
    const ofType = (from: readonly Relation[], type: string): readonly Relation[] =>
      keepFirstOfEach(
        from.filter((relation) => relation.type === type),
        seen,
      )
    for (const layout of ofType(relations, 'slideLayout')) {
      parts.push(await describe(layout.path, true))
      for (const master of ofType(await archive.readRelations(layout.path), 'slideMaster'))
        parts.push(await describe(master.path, true))
    }
    for (const type of ['notesSlide', 'comments'])
      for (const part of ofType(relations, type)) parts.push(await describe(part.path))
    slides.push(parts)
  }
  return slides
}
