// One document: the images of its pages beside their text, filled in as it is read.

import { call, ENDED, follow } from './api.js'
import { announce, h, keepFocus, say } from './dom.js'
import { bytes, count } from './format.js'
import { noticeOthers } from './others.js'
import { makeQuestions } from './questions.js'
import { act, cancelButton, progressBar } from './tables.js'


export async function show(view, { id, showLink }) {
  const path = `/api/v1/documents/${encodeURIComponent(id)}`
  const record = await call('GET', path)
  document.title = `${record.title} · Millrace`
  const pages = makePages(path)
  const card = makeCard(record, (force) => read(force))
  view.replaceChildren(card.node, makeQuestions(record), pages.node)

  let followed = null
  let shown = []
  const take = (rows) => {
    shown = rows
    pages.take(rows)
    return rows
  }
  const readPages = async () => take(await call('GET', `${path}/pages`))
  const fail = (problem) => card.fail(problem.message)
  const end = async (status, error) => {
    followed = null
    others.watch()
    const rows = await readPages()
    card.rest(rows, status === 'failed' ? error.detail : status === 'cancelled' ? 'Reading was cancelled' : null)
    announce(status === 'done' ? 'The document has been read' : `Reading ${status}`)
  }
  const watch = (jobId) => {
    if (followed === jobId) return
    followed = jobId
    others.rest()
    card.busy(jobId)
    const stop = follow(
      `/api/v1/jobs/${jobId}/events`,
      {
        status: ({ status, label, progress, error }) => {
          card.progress(label, progress)
          if (progress?.total) pages.ready(progress.current ?? 0, progress.total)
          if (!ENDED.has(status)) return
          stop()
          end(status, error).catch(fail)
        },
      },
      (state) => showLink(state === 'live' ? 'live' : 'lost'),
    )
  }
  const read = async (force) => {
    const { job_id } = await call('POST', `${path}/extract?background=true&force=${force}`)
    if (force) pages.forget()
    watch(job_id)
    return 'The document is being read'
  }
  const others = noticeOthers({
    look: async () => {
      const { job_id } = await call('GET', `${path}/extraction`)
      if (job_id === null || followed !== null) return
      pages.forget()
      announce('The document is being read')
      watch(job_id)
    },
    ended: async () => {
      const rows = await call('GET', `${path}/pages`)
      if (followed !== null || JSON.stringify(rows) === JSON.stringify(shown)) return
      pages.forget()
      card.rest(take(rows), null)
      announce('The document has been read')
    },
    fail,
    showLink,
  })

  const rows = await readPages()
  const { job_id } = await call('GET', `${path}/extraction`)
  if (job_id !== null) return watch(job_id)
  card.rest(rows, null)
  others.watch()
}

function makeCard({ title, media_type, byte_size }, read) {
  const note = h('p', { class: 'label' })
  const bar = progressBar()
  const actions = h('div', { class: 'actions' })
  const about = h('p', { class: 'soft' }, `${media_type} · ${bytes(byte_size)}`)
  const node = h(
    'section',
    { class: 'panel sticky' },
    h('div', { class: 'line' }, h('h1', {}, title), about, h('span', { class: 'gap' }), actions),
    bar.node,
    note,
  )
  const show = (...buttons) => keepFocus(actions, () => actions.replaceChildren(...buttons))
  return {
    node,
    busy: (jobId) => {
      bar.node.hidden = false
      bar.update(null)
      show(h('a', { href: `/monitor/jobs/${jobId}` }, 'Job'), cancelButton(jobId, 'the reading'))
    },
    progress: (label, progress) => {
      say(note, label)
      bar.update(progress ?? null)
    },
    rest: (rows, problem) => {
      bar.node.hidden = true
      const [readOnes, all] = [rows.filter(({ status }) => status === 'read').length, rows.length]
      note.classList.toggle('bad', problem !== null)
      say(note, problem ?? (all === 0 ? 'Not read yet' : `${count(readOnes)} of ${count(all)} pages read`))
      const again = all > 0
      show(act(again ? 'Read again' : 'Read', 'Reading…', again ? 'Read again' : 'Read the document', () => read(again)))
    },
    fail: (problem) => {
      note.classList.add('bad')
      say(note, problem)
    },
  }
}

/** The pages. Those far out of view are neither fetched nor drawn: a document may have thousands. */
function makePages(path) {
  const node = h('ol', { class: 'pages' })
  const pages = []
  const near = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const page = pages[Number(target.dataset.page) - 1]
        page.near = isIntersecting
        load(page)
      }
    },
    { rootMargin: '600px' },
  )

  const load = async (page) => {
    if (!page.near || !page.ready || page.shown) return
    page.shown = true
    try {
      page.show(await call('GET', `${path}/pages/${page.number}`))
    } catch (error) {
      page.shown = false
      page.fail(error.message)
    }
  }
  const upTo = (total) => {
    while (pages.length < total) {
      const page = makePage(path, pages.length + 1)
      pages.push(page)
      node.append(page.node)
      near.observe(page.node)
    }
  }
  return {
    node,
    take: (rows) => {
      upTo(rows.length)
      for (const { page_number, width, height } of rows) {
        upTo(page_number)
        const page = pages[page_number - 1]
        page.size(width, height)
        page.ready = true
        load(page)
      }
    },
    ready: (current, total) => {
      upTo(total)
      for (const page of pages.slice(0, current)) {
        page.ready = true
        load(page)
      }
    },
    forget: () => {
      for (const page of pages) {
        page.ready = false
        page.shown = false
        page.wait()
      }
    },
  }
}

const METHODS = { text_layer: 'text layer', vision: 'read by', none: 'unread' }

function makePage(path, number) {
  const picture = h('div', { class: 'picture' })
  const chips = h('span', { class: 'chips' })
  const text = h('div', { class: 'text', tabindex: '0', role: 'region', 'aria-label': `Text of page ${number}` })
  const heading = h('h2', {}, `Page ${number}`)
  const node = h('li', { class: 'page panel waits', id: `page-${number}`, 'data-page': number }, picture, h('div', { class: 'beside' }, h('div', { class: 'line' }, heading, chips), text))
  return {
    number,
    node,
    near: false,
    ready: false,
    shown: false,
    size: (width, height) => {
      if (width !== null) picture.style.aspectRatio = `${width} / ${height}`
    },
    wait: () => node.classList.add('waits'),
    fail: (problem) => say(text, problem),
    show(page) {
      node.classList.remove('waits')
      this.size(page.width, page.height)
      const how = page.method === 'vision' ? `read by ${page.model ?? 'no model: blank'}` : METHODS[page.method]
      chips.replaceChildren(h('span', { class: `chip ${page.status === 'read' ? 'good' : 'warn'}` }, how))
      const detail = page.detail === null ? [] : [h('p', { class: 'soft' }, page.detail)]
      text.replaceChildren(...detail, page.text === '' ? h('p', { class: 'soft' }, 'No text') : page.text)
      if (!page.has_image) return picture.replaceChildren(h('span', { class: 'soft' }, 'No image'))
      const src = `${path}/pages/${number}/image`
      picture.replaceChildren(h('img', { src, alt: `Image of page ${number}`, width: page.width, height: page.height }))
    },
  }
}
