import type { BodyWriter } from './http/server.ts'

/**
 * Sends bytes as fast as the client takes them. The response begins with the first piece, so that missing bytes can
 * still be answered with an error; a later error cuts the connection, because the length has been announced by then.
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
