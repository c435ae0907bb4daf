import type { ReplyHead, Responder } from './types.ts'

/**
 * Sends a response body of unknown length in pieces. The first piece is read before the head is sent, so that an
 * immediate failure still gets its status. A later failure closes the connection. @throws the error of `pieces`
 */
export async function sendPieces(
  responder: Responder,
  head: () => ReplyHead,
  pieces: AsyncGenerator<Uint8Array>,
): Promise<void> {
  const first = await pieces.next()
  const writer = responder.beginChunks(head())
  try {
    if (!first.done) await writer.write(first.value)
    for await (const piece of pieces) await writer.write(piece)
    writer.end()
  } catch (error) {
    await pieces.return(undefined)
    writer.abort()
    throw error
  }
}
