// Page of one document. Shows page images next to their text, and adds pages while the document is being read.

import { call, readList } from '../parts/api.js'
import { announce, h, panel } from '../parts/dom.js'
import { FINAL_STATUSES } from '../parts/jobs.js'
import { subscribe } from '../parts/streams.js'
import { makeAbout } from './about.js'
import { watchExtractions } from './others.js'
import { makePages } from './pages.js'
import { makeQuestions } from './questions.js'
import { pathOf } from './records.js'
import { makeStrip } from './strip.js'
import { makeToolbar } from './toolbar.js'

export async function page({ params: { id }, showConnection, setTitle }) {
  const path = pathOf(id)
  const record = await call('GET', path)
  setTitle(record.title)
  const strip = makeStrip((number) => pages.go(number))
  const pages = makePages(path, { onCurrent: (number) => toolbar.setCurrent(number) })
  const toolbar = makeToolbar(record, path, { pages, strip })
  const extract = async (query = '', json = undefined) => {
    const { job_id } = await call('POST', `${path}/extract?background=true${query}`, json && { json })
    if (query.includes('force=true')) pages.reset()
    reading.follow(job_id)
    return 'The document is being read'
  }
  const questions = makeQuestions([record], { onRead: () => extract() })
  const content = h('div', { class: 'content' }, panel('Ask', {}, questions.node), toolbar.node, pages.node)
  const about = makeAbout(record, { extract, setTitle, content })
  const reading = makeReading(path, { about, pages, toolbar, questions, showConnection })
  toolbar.show([], 0)
  return [about, { node: content, load: reading.load }]
}

/** Follows the reading of a document, and shows its pages. */
function makeReading(path, { about, pages, toolbar, questions, showConnection }) {
  let followedJob = null
  let shownRows = []
  const fail = (problem) => about.showError(problem.message)
  const showRows = (rows) => {
    shownRows = rows
    pages.showRows(rows)
    toolbar.show(rows, pages.total())
    questions.setRead(rows.some(({ status }) => status === 'read') || followedJob !== null)
    return rows
  }
  const finish = async (status, error) => {
    followedJob = null
    extractions.watch()
    const rows = showRows(await readRows(path))
    about.showIdle(rows, status === 'failed' ? error.detail : status === 'cancelled' ? 'Reading was cancelled' : null)
    announce(status === 'done' ? 'The document has been read' : `Reading ${status}`)
    await Promise.all([toolbar.refresh(), about.reload()])
  }
  const follow = (jobId) => {
    if (followedJob === jobId) return
    followedJob = jobId
    extractions.stop()
    about.showBusy(jobId)
    const stop = subscribe(
      `job:${jobId}`,
      {
        status: ({ status, label, progress, error }) => {
          about.showProgress(label, progress)
          if (progress?.total) {
            pages.markReady(progress.current ?? 0, progress.total)
            toolbar.show(shownRows, progress.total)
          }
          if (!FINAL_STATUSES.has(status)) return
          stop()
          finish(status, error).catch(fail)
        },
      },
      showConnection,
    )
  }
  const extractions = watchExtractions({
    onNewJob: async () => {
      const { job_id } = await call('GET', `${path}/extraction`)
      if (job_id === null || followedJob !== null) return
      pages.reset()
      announce('The document is being read')
      follow(job_id)
    },
    onExtractionEnd: async () => {
      const rows = await readRows(path)
      if (followedJob !== null || JSON.stringify(rows) === JSON.stringify(shownRows)) return
      pages.reset()
      about.showIdle(showRows(rows), null)
      announce('The document has been read')
      await Promise.all([toolbar.refresh(), about.reload()])
    },
    fail,
    showConnection,
  })
  const load = async () => {
    try {
      const [rows, { job_id }] = await Promise.all([readRows(path), call('GET', `${path}/extraction`)])
      showRows(rows)
      if (job_id !== null) follow(job_id)
      else {
        about.showIdle(rows, null)
        extractions.watch()
      }
      toolbar.refresh()
      // The page scrolls to its fragment before a slow answer arrives.
      document.getElementById(location.hash.slice(1))?.scrollIntoView()
    } catch (error) {
      fail(error)
    }
  }
  return { load, follow }
}

/** Reads the rows of all pages, without their texts. */
async function readRows(path) {
  const rows = []
  for (let next = `${path}/pages?limit=1000`; next !== null; ) {
    const page = await readList(next)
    rows.push(...page.items)
    next = page.next
  }
  return rows
}
