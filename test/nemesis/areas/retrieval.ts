import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { MakeArea } from '../area.ts'
import { follow } from '../follow.ts'

const COLLECTIONS = 4

/** Changes folders, reindexes them and searches their collections. */
export const retrieval: MakeArea = (admin) => {
  const indexed = new Map<string, number>()

  return {
    act: async () => {
      const collection = `collection-${admin.chance.between(1, COLLECTIONS)}`
      const folder = join(admin.world.ragRoot, collection)
      mkdirSync(folder, { recursive: true })
      const files = (indexed.get(collection) ?? 0) + 1
      const word = admin.createWord().replaceAll('-', '')
      try {
        writeFileSync(join(folder, `${files}.md`), `# ${word}\n\nA letter about ${word}.\n`)
      } catch {
        // Writing fails while a fault keeps the disk full.
        return
      }
      const json = { path: folder, collection_name: collection }
      const { json: asked } = await admin.post('/rag/index?background=true', { json })
      await follow(admin, asked.job_id)
      indexed.set(collection, files)
      const search = { method: 'POST' as const, json: { query: word, collection_name: collection, top_k: 1 } }
      const { json: found } = await admin.ask('/rag/search', search)
      if (!String(found.results?.[0]?.content).includes(word))
        admin.recordViolation(`${word} of ${collection} is not found: ${JSON.stringify(found)}`)
    },
    judge: async () => {
      const rows = await admin.world.query(
        `select c.name, count(f.*)::int as files from rag_collection c left join rag_file f on f.collection_id = c.id group by 1`,
      )
      return [...indexed].flatMap(([name, files]) => {
        const own = rows.filter((row) => row.name === name)
        return own.length === 1 && own[0]!.files === files
          ? []
          : [`${name} has ${JSON.stringify(own)}, expected ${files} indexed files`]
      })
    },
  }
}
