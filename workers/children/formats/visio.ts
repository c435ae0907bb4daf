import { type Archive, keepFirstOfEach } from './archive.ts'
import { PageCollector, type PagedText } from './texts.ts'
import { parseXml } from './xml.ts'

/** Opens drawings of Visio 2013 and later (MS-VSDX): one page per page, a line for each shape, then the comments. */

/** A part of a drawing that has a list of shapes. */
interface ListedPart {
  readonly id: string
  readonly name: string
  readonly path: string
}

/** A shape with its own text; null if it shows the text of its master. */
interface Shape {
  readonly id: string
  readonly master: string
  /** The shape of the master; '' for its first one. */
  readonly masterShape: string
  text: string | null
}

/** Opens a drawing. @throws Unreadable. */
export async function openVsdx(archive: Archive): Promise<PagedText> {
  const relations = await archive.readRelations(await archive.findMainPart())
  const list = async (type: string, element: string): Promise<readonly ListedPart[]> => {
    const part = relations.find((relation) => relation.type === type)
    return part === undefined ? [] : await listParts(archive, part.path, element)
  }
  const pages = await list('pages', 'Page')
  const masters = new Map<string, ReadonlyMap<string, string>>()
  for (const { id, path } of await list('masters', 'Master')) masters.set(id, await readMaster(archive, path))
  const comments = readComments(
    (await archive.text(relations.find(({ type }) => type === 'comments')?.path ?? '')) ?? '',
  )
  const pageCount = Math.max(1, pages.length)
  return {
    pageCount,
    ...archive.describePages(pageCount, await archive.placePictures(pages.map((page) => [page]))),
    async read(number) {
      const page = pages[number - 1]
      if (page === undefined) return { text: '', markdown: null }
      const collector = new PageCollector()
      collector.add(`${page.name}\n`)
      for (const { text, master, masterShape } of readShapes((await archive.text(page.path)) ?? '')) {
        const words = text ?? masters.get(master)?.get(masterShape) ?? ''
        collector.add(words.replace(/\r\n?/g, '\n').trim())
        collector.endLine()
      }
      collector.add((comments.get(page.id) ?? []).join('\n'))
      return { text: collector.end().join('\n'), markdown: null }
    },
  }
}

/** Lists the pages or masters that a part names. */
async function listParts(archive: Archive, path: string, element: string): Promise<readonly ListedPart[]> {
  const paths = new Map((await archive.readRelations(path)).map((relation) => [relation.id, relation.path]))
  const parts: ListedPart[] = []
  let [id, name] = ['', '']
  parseXml((await archive.text(path)) ?? '', {
    open(tag, attributes) {
      if (tag === element) [id, name] = [attributes.ID ?? '', attributes.Name ?? attributes.NameU ?? '']
      const target = tag === 'Rel' ? paths.get(attributes['r:id'] ?? '') : undefined
      if (target !== undefined) parts.push({ id, name, path: target })
    },
  })
  return keepFirstOfEach(parts)
}

/** Reads the shapes of a page or master, in order. */
function readShapes(xml: string): readonly Shape[] {
  const shapes: Shape[] = []
  const open: Shape[] = []
  let isText = false
  parseXml(xml, {
    open(name, { ID: id = '', Master: master, MasterShape: masterShape = '' }) {
      if (name === 'Shape') {
        const shape = { id, master: master ?? open.at(-1)?.master ?? '', masterShape, text: null }
        shapes.push(shape)
        open.push(shape)
      } else if (name === 'Text') isText = true
    },
    text(data) {
      const shape = open.at(-1)
      if (isText && shape !== undefined) shape.text = (shape.text ?? '') + data
    },
    close(name) {
      if (name === 'Shape') open.pop()
      else if (name === 'Text') isText = false
    },
  })
  return shapes
}

/** Reads the texts of a master by the numbers of its shapes; '' is the first one. */
async function readMaster(archive: Archive, path: string): Promise<ReadonlyMap<string, string>> {
  const shapes = readShapes((await archive.text(path)) ?? '')
  const texts = new Map(shapes.map(({ id, text }) => [id, text ?? '']))
  return texts.set('', shapes[0]?.text ?? '')
}

/** Returns the comments by the numbers of their pages. */
function readComments(xml: string): ReadonlyMap<string, readonly string[]> {
  const comments = new Map<string, string[]>()
  let words: string | null = null
  let page = ''
  parseXml(xml, {
    open(name, { PageID: id = '' }) {
      if (name === 'CommentEntry') [words, page] = ['', id]
    },
    text(data) {
      if (words !== null) words += data
    },
    close(name) {
      if (name !== 'CommentEntry' || words === null) return
      const ofPage = comments.get(page) ?? []
      ofPage.push(words.trim())
      comments.set(page, ofPage)
      words = null
    },
  })
  return comments
}
