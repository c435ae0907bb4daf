/** The kind of event that says that a piece is there; its data: `{generation}`. */
export const CHUNK_EVENT = 'chunk'
