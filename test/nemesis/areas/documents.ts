import { buildTextPdf } from '../../pdfs.ts'
import type { MakeArea } from '../area.ts'
import { findMissingOrDuplicate } from '../area.ts'
import { follow } from '../follow.ts'

/** Uploads, extracts, tags and searches documents. */
export const documents: MakeArea = (admin, user) => {
  const titles: string[] = []
  const read: { readonly id: number; readonly pages: number }[] = []

  return {
    act: async () => {
      const caller = user.chance.isHit(0.5) ? user : admin
      const title = caller.createWord()
      const pages = caller.chance.between(1, 12)
      const bytes = await buildTextPdf(pages, { line: () => title })
      const form = (): FormData => {
        const fields = new FormData()
        fields.set('title', title)
        fields.set('file', new File([bytes as Uint8Array<ArrayBuffer>], `${title}.pdf`))
        return fields
      }
      const { json: document } = await caller.post('/api/v1/documents', { form })
      titles.push(title)
      const at = `/api/v1/documents/${document.id}`
      const { json } = await caller.post(`${at}/extract?background=true`)
      await follow(caller, json.job_id)
      const listed = await caller.ask(`${at}/pages`)
      const unread = listed.json.filter((page: { status: string }) => page.status !== 'read')
      if (listed.json.length !== pages || unread.length > 0)
        caller.recordViolation(`document ${document.id} of ${pages} pages has ${listed.text}`)
      read.push({ id: document.id, pages })
      const content = await caller.ask(`${at}/content`)
      if (content.text !== Buffer.from(bytes).toString('latin1'))
        caller.recordViolation(`document ${document.id} differs from its upload`)
      await caller.ask(`${at}/tags`, { method: 'POST', json: { label: title } })
      const search = await caller.ask(`/api/v1/documents?search=${title}`)
      if (search.json.total !== 1) caller.recordViolation(`${title} was found ${search.json.total} times`)
    },
    judge: async () => {
      const rows = await admin.world.query('select title, sha256 from document where deleted_at is null')
      const pages = await admin.world.query(
        `select document_id::int as id, count(*)::int as pages, count(*) filter (where status = 'read')::int as read
         from document_page group by 1`,
      )
      const found = findMissingOrDuplicate(
        'document',
        titles,
        rows.map(({ title }) => String(title)),
      )
      for (const { id, pages: wanted } of read) {
        const row = pages.find((one) => one.id === id)
        if (row?.pages !== wanted || row.read !== wanted)
          found.push(`document ${id} of ${wanted} pages has ${JSON.stringify(row)}`)
      }
      return found
    },
  }
}
