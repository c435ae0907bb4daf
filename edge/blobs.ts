import type { BodyWriter } from './http/server.ts'

/**
 * Sends bytes as fast as the client takes them. The answer begins with the first piece, so that bytes that are gone
 * can still be told of; what goes wrong later cuts the connection, since the length is promised by then.
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
