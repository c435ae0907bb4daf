/**
 * Separates reasoning within the text of an answer, such as `<think>…</think>` of Qwen and DeepSeek models. The tags may
 * arrive in parts. A tag within code is text, because answers quote tags there.
 */
export interface ReasoningFilter {
  /** Adds a piece of the answer; returns the text that is certainly no reasoning. */
  push(piece: string): string
  /** Ends the answer; returns the rest of its text. */
  end(): string
  /** The reasoning so far. */
  readonly reasoning: string
  /**
   * True if the text returned so far was reasoning: its opening tag is part of the model's prompt, and only the closing
   * tag arrived. The next text is the first of the answer. Reading it resets it.
   */
  takeRestart(): boolean
}

const NAMES = 'think|thinking|thought|thoughts|reasoning'
const OPENING = new RegExp(`<(${NAMES})>`, 'i')
const CLOSING = new RegExp(`</(${NAMES})>`, 'i')
// The start of a tag at the end of the text so far.
const PARTIAL_TAG = /<\/?[a-z]{0,9}$/i
const NAME_LIST = NAMES.split('|')

export function createReasoningFilter(): ReasoningFilter {
  return new TagFilter()
}

class TagFilter implements ReasoningFilter {
  #buffer = ''
  #reasoning = ''
  /** Text returned so far. */
  #shown = ''
  #isInside = false
  #isAfterReasoning = false
  #mustRestart = false
  #hasOpened = false

  get reasoning(): string {
    return this.#reasoning.trim()
  }

  takeRestart(): boolean {
    const restart = this.#mustRestart
    this.#mustRestart = false
    return restart
  }

  push(piece: string): string {
    this.#buffer += piece
    let shown = ''
    for (;;) {
      const tag = this.#isInside ? this.#findClosing() : this.#findTag(shown)
      if (tag === null) break
      const before = this.#buffer.slice(0, tag.index)
      this.#buffer = this.#buffer.slice(tag.index + tag.length)
      if (this.#isInside) this.#reasoning += before
      else if (tag.isClosing) {
        this.#reasoning += this.#shown + shown + before
        this.#mustRestart = this.#shown !== ''
        this.#shown = ''
        shown = ''
      } else shown += this.#show(before)
      this.#isInside = !tag.isClosing
      this.#hasOpened = true
      this.#isAfterReasoning = tag.isClosing
    }
    const kept = partialTagOf(this.#buffer)
    const ready = this.#buffer.slice(0, this.#buffer.length - kept.length)
    this.#buffer = kept
    if (this.#isInside) this.#reasoning += ready
    else shown += this.#show(ready)
    this.#shown += shown
    return shown
  }

  end(): string {
    const rest = this.#buffer
    this.#buffer = ''
    if (this.#isInside) this.#reasoning += rest
    const shown = this.#isInside ? '' : this.#show(rest)
    this.#shown += shown
    return shown
  }

  /** Drops the blank lines between reasoning and text. */
  #show(text: string): string {
    if (!this.#isAfterReasoning) return text
    const trimmed = text.trimStart()
    if (trimmed !== '') this.#isAfterReasoning = false
    return trimmed
  }

  #findClosing(): Tag | null {
    const found = CLOSING.exec(this.#buffer)
    return found === null ? null : { index: found.index, length: found[0].length, isClosing: true }
  }

  /** Finds the next tag outside of code. A closing tag counts only if no opening one came before. */
  #findTag(shown: string): Tag | null {
    for (let from = 0; ; ) {
      const rest = this.#buffer.slice(from)
      const opening = OPENING.exec(rest)
      const closing = this.#hasOpened ? null : CLOSING.exec(rest)
      const isClosing = closing !== null && (opening === null || closing.index < opening.index)
      const found = isClosing ? closing : opening
      if (found === null) return null
      const index = from + found.index
      const before = this.#shown + shown + this.#buffer.slice(0, index)
      if (!isInCode(before)) return { index, length: found[0].length, isClosing }
      from = index + found[0].length
    }
  }
}

interface Tag {
  readonly index: number
  readonly length: number
  readonly isClosing: boolean
}

/** Returns the end of a text that may be the start of a tag. */
function partialTagOf(text: string): string {
  const [partial = ''] = PARTIAL_TAG.exec(text) ?? []
  const name = partial.replace(/^<\/?/, '').toLowerCase()
  return NAME_LIST.some((each) => each.startsWith(name)) ? partial : ''
}

/** True if the end of a text is within a fenced block or, on its line, within backticks. */
function isInCode(text: string): boolean {
  const fences = text.match(/^[ \t]*(```|~~~)/gm)?.length ?? 0
  if (fences % 2 === 1) return true
  const line = text.slice(text.lastIndexOf('\n') + 1)
  return (line.match(/`/g)?.length ?? 0) % 2 === 1
}
