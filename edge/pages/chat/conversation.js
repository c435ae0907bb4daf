// A conversation: its messages, the answer that is being written, and its cost.

import { actionButton } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { announce, h, reconcile } from '../parts/dom.js'
import { emptyNotice, failure, skeleton } from '../parts/states.js'
import { composer } from './composer.js'
import { makeMeter } from './meter.js'
import { messageRow } from './message.js'
import { makeSpoken, makeThread } from './thread.js'
import { followTurn } from './turns.js'
import { writingRow } from './writing.js'

const PAGE = 50
const MAX_PAGE = 1000

/**
 * Makes the pane. `pane` has `begun(id)`, which runs when a new conversation has an id, and `changed(conversation)`, which
 * runs after a turn.
 */
export function conversationPane(pane) {
  const state = { id: null, messages: [], next: null, turn: null, showing: null }
  const older = actionButton('Earlier messages', 'Loading…', 'Show earlier messages', () => readOlder(), true)
  const items = h('ol', { class: 'messages' })
  const outcome = h('div', { class: 'outcome-slot' })
  const { node: body, toEnd, scrollToEnd, keepEnd, keepPlace } = makeThread()
  const spoken = makeSpoken()
  const meter = makeMeter()
  const form = composer({ onSend: (question) => ask(question), onStop: () => stop() })
  const node = h('section', { class: 'panel conversation', 'aria-label': 'Conversation' }, pane.bar, body, toEnd, spoken.node, form.node, meter.node)

  const show = async (id) => {
    state.turn?.leave()
    Object.assign(state, { id, messages: [], next: null, turn: null })
    outcome.replaceChildren()
    form.setWriting(false)
    meter.show(null)
    if (id === null) return body.replaceChildren(welcome())
    body.replaceChildren(skeleton(6))
    try {
      const conversation = await read()
      if (conversation === null) return
      body.replaceChildren(older, items, outcome)
      draw(conversation)
      scrollToEnd()
      if (conversation.pending_message_id !== null) follow({ messageId: conversation.pending_message_id })
      else offerAnswer()
    } catch (error) {
      if (state.id !== id) return
      body.replaceChildren(failure(error, () => show(id)))
      if (error.status === 0) addEventListener('online', () => state.id === id && show(id), { once: true })
    }
  }
  /** Reads the newest messages, as many as are shown. Null if the person has opened another conversation meanwhile. */
  const read = async () => {
    const reading = (state.showing = Symbol('reading'))
    const limit = Math.min(MAX_PAGE, Math.max(PAGE, state.messages.length + 2))
    const conversation = await call('GET', `/api/v1/ai/conversations/${state.id}?limit=${limit}`)
    return reading === state.showing ? conversation : null
  }
  const draw = (conversation) => {
    const { messages, next, usage } = conversation
    Object.assign(state, { messages, next })
    pane.changed(conversation)
    meter.show(usage)
    redraw()
  }
  const redraw = () => {
    older.hidden = state.next === null
    reconcile(items, state.messages, ({ id }) => id, (message) => messageRow(message, actions))
  }
  const readOlder = async () => {
    const { messages, next } = await call('GET', `/api/v1/ai/conversations/${state.id}?limit=${PAGE}&cursor=${encodeURIComponent(state.next)}`)
    state.messages = [...messages, ...state.messages]
    state.next = next
    keepPlace(redraw)
    return `${messages.length} earlier messages shown`
  }
  const reload = async () => {
    const conversation = await read()
    if (conversation === null) return null
    keepEnd(() => draw(conversation))
    return conversation
  }

  /** Returns the number of messages before the one that a question replaces or answers again. */
  const placeOf = ({ edit_id: edited, regenerate_id: regenerated }) => {
    const at = state.messages.findIndex(({ id }) => id === (edited ?? regenerated))
    if (at < 0) return state.messages.length
    return regenerated !== undefined && state.messages[at].role !== 'assistant' ? at + 1 : at
  }
  /** Asks a question. Messages that it replaces are hidden until the answer is there. */
  const ask = (question) => {
    outcome.replaceChildren()
    if (state.id === null) body.replaceChildren(older, items, outcome)
    state.messages = state.messages.slice(0, placeOf(question))
    if (question.message !== undefined) state.messages = [...state.messages, draftOf(question)]
    redraw()
    scrollToEnd()
    return follow({ question: { ...question, ...(state.id === null ? {} : { conversation_id: state.id }) } })
  }
  /** Follows a turn until it ends, and then reads the conversation again. */
  const follow = async ({ question, messageId }) => {
    const abort = new AbortController()
    const row = writingRow(keepEnd)
    const turn = { jobId: null, isStopped: false, leave: () => abort.abort() }
    state.turn = turn
    items.append(row.node)
    form.setWriting(true)
    scrollToEnd()
    const connect = ({ conversation_id, job_id }) => {
      turn.jobId = job_id
      if (turn.isStopped) stop()
      if (state.id !== null) return
      state.id = conversation_id
      pane.begun(conversation_id)
    }
    const problem = await followTurn({ question, messageId, signal: abort.signal, on: { ...row.on, connect } }).then(() => null, (error) => error)
    if (abort.signal.aborted) return row.end()
    await finish(turn, row, problem, question)
  }
  const finish = async (turn, row, problem, question) => {
    const isStored = turn.jobId !== null
    const { id } = state
    state.turn = null
    const conversation = id === null ? null : await reload().catch(() => null)
    // The person may have opened another conversation meanwhile.
    if (state.id !== id) return row.end()
    keepEnd(() => row.end())
    form.setWriting(false)
    if (!isStored && state.id !== null && question?.message !== undefined && question.edit_id === undefined) showDraft(question)
    const isStopped = problem?.code === 'turn.stopped'
    const last = conversation?.messages.at(-1)
    spoken.say(problem === null || isStopped ? (last?.role === 'assistant' ? `Answer: ${last.content}` : 'Stopped') : `The answer failed: ${problem.message}`)
    if (problem !== null && !isStopped) keepEnd(() => outcome.replaceChildren(failure(problem, () => tryAgain(isStored, question))))
    else if (conversation !== null) offerAnswer()
    meter.update()
  }
  /** Asks again. A question that the service did not take is sent as it was; another one gets another answer. */
  const tryAgain = (isStored, question) => {
    state.messages = state.messages.filter(({ id }) => id !== 'draft')
    if (isStored || question === undefined) return regenerateLast()
    const { conversation_id: _, ...again } = question
    return ask(again)
  }
  const showDraft = (question) => {
    state.messages = [...state.messages, draftOf(question)]
    keepEnd(redraw)
  }
  const regenerateLast = () => {
    const last = state.messages.at(-1)
    if (last !== undefined) return actions.regenerate(last)
  }
  /** Offers to answer a question that has no answer. */
  const offerAnswer = () => {
    if (state.messages.at(-1)?.role !== 'user') return
    outcome.replaceChildren(emptyNotice('This question has no answer.', h('button', { class: 'plain', type: 'button', onclick: regenerateLast }, 'Answer it')))
  }
  const stop = async () => {
    if (state.turn === null) return
    state.turn.isStopped = true
    if (state.turn.jobId === null) return
    await call('DELETE', `/api/v1/jobs/${state.turn.jobId}`).catch((error) => announce(error.message, { isBad: true }))
  }

  const actions = {
    regenerate: (message) => {
      if (state.turn !== null) throw new Error('Wait for the current answer, or stop it')
      ask({ regenerate_id: message.id, ...form.settings() })
      form.focus()
    },
    edit: (message, text) => {
      if (state.turn !== null) return announce('Wait for the current answer, or stop it', { isBad: true })
      const documents = message.document_ids.length > 0 ? { document_ids: message.document_ids } : {}
      ask({ message: text, edit_id: message.id, ...form.settings(), ...documents })
      form.focus()
    },
    branch: async (message) => {
      const copy = await call('POST', `/api/v1/ai/conversations/${state.id}/branch`, { json: { message_id: message.id } })
      pane.branched(copy)
      return 'Copied into a new conversation'
    },
    /** Shows another version. Versions without text are left out, because a conversation does not show them. */
    show: async ({ id, versions }, by) => {
      for (let at = versions.indexOf(id) + by; versions[at] !== undefined; at += by) {
        await call('PATCH', `/api/v1/ai/conversations/${state.id}`, { json: { active_message_id: versions[at] } })
        const conversation = await reload()
        if (conversation === null || conversation.messages.some((message) => message.id === versions[at])) return `Version ${at + 1} of ${versions.length}`
      }
      return null
    },
  }
  return { node, show, focus: form.focus }
}

const welcome = () => h('div', { class: 'welcome' }, h('p', { class: 'lead' }, 'Ask anything.'), h('p', { class: 'soft' }, 'Attach documents, or search a collection to get answers with their sources.'))

/** The message that stands for a question until the service has stored it. */
const draftOf = ({ message, document_ids: documents = [] }) => ({
  ...{ id: 'draft', role: 'user', content: message, status: 'complete', finish_reason: null, reasoning: null, document_ids: documents },
  ...{ tool_calls: null, tool_results: null, versions: [], usage: null, rag_sources: null, timestamp: new Date().toISOString() },
})
