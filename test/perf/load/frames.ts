/** A server-sent event as a client received it. */
export interface SeenFrame {
  readonly event: string
  readonly id: string
  readonly data: string
}

/**
 * Extracts server-sent events from the raw text of a response. Headers and chunk sizes do not look like event fields,
 * so it need not parse them.
 */
export class FrameReader {
  private rest = ''

  feed(text: string): SeenFrame[] {
    const blocks = (this.rest + text).split('\n\n')
    this.rest = blocks.pop() ?? ''
    return blocks.map(frameOf).filter((frame) => frame !== null)
  }
}

function frameOf(block: string): SeenFrame | null {
  const fields: Record<string, string> = {}
  for (const line of block.split('\n')) {
    const colon = line.indexOf(': ')
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2)
  }
  const { event = '', id = '', data } = fields
  return data === undefined ? null : { event, id, data }
}
