-- Room on each page for the second version of every row on it: the end of a run adds a third to its row, so a page that
-- was filled to the half kept three of four, and each fourth was a new entry in the index. Takes no lock that anybody
-- waits for; pages that are there stay as they are.
ALTER TABLE execution SET (fillfactor = 40);
