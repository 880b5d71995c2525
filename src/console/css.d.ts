/** A style sheet has no value. Vite puts it into the file of the chunk that imports it. */
declare module '*.css'
