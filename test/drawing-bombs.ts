import type { Bomb } from './bombs.ts'
import { packRepeat } from './packing.ts'
import { createZip } from './zip.ts'

/** Drawings and pictures that claim more than they have, or that are deep. */

const RELATIONS = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const relations = (type: string, target: string): string =>
  `<Relationships><Relationship Id="a" Type="${RELATIONS}/${type}" Target="${target}"/></Relationships>`

/** Creates a drawing of Visio whose page repeats `unit`. */
const createVisioBomb = (name: string, unit: string, megabytes: number): Bomb => ({
  name,
  fileName: 'bomb.vsdx',
  make: () =>
    createZip([
      ['_rels/.rels', relations('document', 'd.xml')],
      ['d.xml', '<VisioDocument/>'],
      ['_rels/d.xml.rels', relations('pages', 'p.xml')],
      ['p.xml', `<Pages xmlns:r="${RELATIONS}">${'<Page><Rel r:id="a"/></Page>'.repeat(100_000)}</Pages>`],
      ['_rels/p.xml.rels', relations('page', 'p1.xml')],
      ['p1.xml', packRepeat(unit, megabytes * 1_000_000)],
    ]),
})

/** Creates the header of a Photoshop file of 64 megapixels, whose packed lines are empty. */
function createPsdBomb(): Buffer {
  const head = Buffer.alloc(40)
  head.write('8BPS')
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(3, 12)
  head.writeUInt32BE(8000, 14)
  head.writeUInt32BE(8000, 18)
  head.writeUInt16BE(8, 22)
  head.writeUInt16BE(3, 24)
  head.writeUInt16BE(1, 38)
  return Buffer.concat([head, Buffer.alloc(1_100_000)])
}

export const drawingBombs: readonly Bomb[] = [
  createVisioBomb('a drawing of 90 MB of shapes in shapes', '<Shape>', 90),
  createVisioBomb('a drawing of 90 MB of texts', '<Shape><Text>a</Text></Shape>', 90),
  { name: 'a PSD of 64 megapixels without pixels', fileName: 'bomb.psd', make: createPsdBomb },
]
