package gate

// Invariance holds each row in company to the same row alone. figure says in
// which company.
func Invariance(figure string, ids []string, alone, company [][]float32, tolerance float64) Check {
	value, id := largest(differences(company, alone), ids)
	return hold("invariance", figure, value, AtMost, tolerance, id)
}
