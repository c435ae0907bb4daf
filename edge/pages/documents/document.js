// Page of one document. Shows page images next to their text, and adds pages while the document is being read.

import { call, FINAL_STATUSES, subscribe } from './api.js'
import { announce, h, keepFocus, setText } from './dom.js'
import { formatBytes, formatCount } from './format.js'
import { watchExtractions } from './others.js'
import { makeQuestions } from './questions.js'
import { actionButton, cancelButton, progressBar } from './tables.js'

export async function show(view, { id, showConnection }) {
  const path = `/api/v1/documents/${encodeURIComponent(id)}`
  const record = await call('GET', path)
  document.title = `${record.title} · Millrace`
  const pages = makePages(path)
  const card = makeCard(record, (force) => extract(force))
  view.replaceChildren(card.node, makeQuestions(record), pages.node)

  let followedJob = null
  let shownRows = []
  const showRows = (rows) => {
    shownRows = rows
    pages.showRows(rows)
    return rows
  }
  const readPages = async () => showRows(await call('GET', `${path}/pages`))
  const fail = (problem) => card.showError(problem.message)
  const finish = async (status, error) => {
    followedJob = null
    extractions.watch()
    const rows = await readPages()
    card.showIdle(rows, status === 'failed' ? error.detail : status === 'cancelled' ? 'Reading was cancelled' : null)
    announce(status === 'done' ? 'The document has been read' : `Reading ${status}`)
  }
  const followJob = (jobId) => {
    if (followedJob === jobId) return
    followedJob = jobId
    extractions.stop()
    card.showBusy(jobId)
    const stop = subscribe(
      `/api/v1/jobs/${jobId}/events`,
      {
        status: ({ status, label, progress, error }) => {
          card.showProgress(label, progress)
          if (progress?.total) pages.markReady(progress.current ?? 0, progress.total)
          if (!FINAL_STATUSES.has(status)) return
          stop()
          finish(status, error).catch(fail)
        },
      },
      (state) => showConnection(state === 'live' ? 'live' : 'lost'),
    )
  }
  const extract = async (force) => {
    const { job_id } = await call('POST', `${path}/extract?background=true&force=${force}`)
    if (force) pages.reset()
    followJob(job_id)
    return 'The document is being read'
  }
  const extractions = watchExtractions({
    onNewJob: async () => {
      const { job_id } = await call('GET', `${path}/extraction`)
      if (job_id === null || followedJob !== null) return
      pages.reset()
      announce('The document is being read')
      followJob(job_id)
    },
    onExtractionEnd: async () => {
      const rows = await call('GET', `${path}/pages`)
      if (followedJob !== null || JSON.stringify(rows) === JSON.stringify(shownRows)) return
      pages.reset()
      card.showIdle(showRows(rows), null)
      announce('The document has been read')
    },
    fail,
    showConnection,
  })

  const rows = await readPages()
  const { job_id } = await call('GET', `${path}/extraction`)
  if (job_id !== null) return followJob(job_id)
  card.showIdle(rows, null)
  extractions.watch()
}

function makeCard({ title, media_type, byte_size }, extract) {
  const note = h('p', { class: 'label' })
  const bar = progressBar()
  const actions = h('div', { class: 'actions' })
  const about = h('p', { class: 'soft' }, `${media_type} · ${formatBytes(byte_size)}`)
  const node = h(
    'section',
    { class: 'panel sticky' },
    h('div', { class: 'line' }, h('h1', {}, title), about, h('span', { class: 'gap' }), actions),
    bar.node,
    note,
  )
  const setActions = (...buttons) => keepFocus(actions, () => actions.replaceChildren(...buttons))
  return {
    node,
    showBusy: (jobId) => {
      bar.node.hidden = false
      bar.update(null)
      setActions(h('a', { href: `/monitor/jobs/${jobId}` }, 'Job'), cancelButton(jobId, 'extraction'))
    },
    showProgress: (label, progress) => {
      setText(note, label)
      bar.update(progress ?? null)
    },
    showIdle: (rows, problem) => {
      bar.node.hidden = true
      const [readCount, total] = [rows.filter(({ status }) => status === 'read').length, rows.length]
      note.classList.toggle('bad', problem !== null)
      setText(note, problem ?? (total === 0 ? 'Not read yet' : `${formatCount(readCount)} of ${formatCount(total)} pages read`))
      const isRead = total > 0
      setActions(actionButton(isRead ? 'Read again' : 'Read', 'Reading…', isRead ? 'Read again' : 'Read the document', () => extract(isRead)))
    },
    showError: (problem) => {
      note.classList.add('bad')
      setText(note, problem)
    },
  }
}

/**
 * Makes the list of pages. It fetches and draws only pages near the viewport, because a document may have thousands.
 */
function makePages(path) {
  const node = h('ol', { class: 'pages' })
  const pages = []
  const observer = new IntersectionObserver(
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
      page.showError(error.message)
    }
  }
  const ensurePages = (total) => {
    while (pages.length < total) {
      const page = makePage(path, pages.length + 1)
      pages.push(page)
      node.append(page.node)
      observer.observe(page.node)
    }
  }
  return {
    node,
    showRows: (rows) => {
      ensurePages(rows.length)
      for (const { page_number, width, height } of rows) {
        ensurePages(page_number)
        const page = pages[page_number - 1]
        page.size(width, height)
        page.ready = true
        load(page)
      }
    },
    markReady: (current, total) => {
      ensurePages(total)
      for (const page of pages.slice(0, current)) {
        page.ready = true
        load(page)
      }
    },
    reset: () => {
      for (const page of pages) {
        page.ready = false
        page.shown = false
        page.showWaiting()
      }
    },
  }
}

const METHODS = { text_layer: 'text layer', none: 'unread' }

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
    showWaiting: () => node.classList.add('waits'),
    showError: (problem) => setText(text, problem),
    show(page) {
      node.classList.remove('waits')
      this.size(page.width, page.height)
      const method = page.method !== 'vision' ? METHODS[page.method] : page.model === null ? 'blank' : `read by ${page.model}`
      chips.replaceChildren(h('span', { class: `chip ${page.status === 'read' ? 'good' : 'warn'}` }, method))
      const detail = page.detail === null ? [] : [h('p', { class: 'soft' }, page.detail)]
      text.replaceChildren(...detail, page.text === '' ? h('p', { class: 'soft' }, 'No text') : page.text)
      if (!page.has_image) return picture.replaceChildren(h('span', { class: 'soft' }, 'No image'))
      const src = `${path}/pages/${number}/image`
      picture.replaceChildren(h('img', { src, alt: `Image of page ${number}`, width: page.width, height: page.height }))
    },
  }
}
