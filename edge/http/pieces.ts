import type { BodyWriter, ChunkWriter, ReplyHead, Responder } from './types.ts'

/**
 * Writes bytes at the client's pace. The head waits for the first piece, so that an immediate failure still gets its
 * status. A later failure closes the connection, because the head is already sent. @throws the error of `pieces`
 */
export async function writePieces(pieces: AsyncIterable<Uint8Array>, begin: () => BodyWriter): Promise<void> {
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

/** Sends a response body of unknown length with {@link writePieces}, and ends it. It may be empty. */
export async function sendPieces(
  responder: Responder,
  head: () => ReplyHead,
  pieces: AsyncIterable<Uint8Array>,
): Promise<void> {
  let writer: ChunkWriter | null = null
  const begin = (): ChunkWriter => {
    writer = responder.beginChunks(head())
    return writer
  }
  await writePieces(pieces, begin)
  const begun = writer ?? begin()
  begun.end()
}
