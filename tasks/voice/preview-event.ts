/** Event kind that announces each stored piece. Its data is `{generation}`. */
export const CHUNK_EVENT = 'chunk'
