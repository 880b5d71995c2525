export const orgEndpoints = {}
