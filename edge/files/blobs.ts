import type { BodyWriter } from '../http/server.ts'

/**
 * Sends bytes at the client's pace. The headers wait for the first piece, so that missing bytes still get an error
 * response. A later error closes the connection, because the Content-Length is already sent.
 */
export async function sendPieces(pieces: AsyncIterable<Uint8Array>, begin: () => BodyWriter): Promise<void> {
  let writer: BodyWriter | null = null
  try {
    for await (const piece of pieces) {
      writer ??= begin()
      await writer.write(piece)
    }
  } catch (error) {
    writer?.abort()
    throw error
  }
}
